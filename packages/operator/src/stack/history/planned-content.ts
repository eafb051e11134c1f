/** Whether a new commit has the content for which a plan was made, and what is checked out to apply the plan. Pure. */
import type { Stack } from "@pko/api";

import type { CommitPair, SourceSpec } from "../../sources/source-view.ts";
import { currentRequest } from "./approval.ts";
import { isCommitId } from "./skipped-commit.ts";
import { parseTrigger, type Stage } from "./trigger.ts";

/** What has to be known about a commit: nothing, or how it differs from that of the plan, or it was compared before. */
export type ContentOfPlan =
  { readonly kind: "noPlan" } | { readonly kind: "same" } | { readonly kind: "commits"; readonly pair: CommitPair };

const noPlan: ContentOfPlan = { kind: "noPlan" };

/** A destroy does not depend on the source. A rejected plan stays rejected while its content is the same. */
export function contentOfPlan(stack: Stack, commit: string): ContentOfPlan {
  const request = currentRequest({ stack });
  if (!request || request.appliedBy !== undefined || request.state === "Superseded") return noPlan;
  const planned = parseTrigger(request.trigger);
  if (!planned || planned.type === "destroy" || planned.revision === commit) return noPlan;
  if (request.coveredCommit === commit) return { kind: "same" };
  return isCommitId(planned.revision) ? { kind: "commits", pair: { from: planned.revision, to: commit } } : noPlan;
}

/**
 * A plan is applied at the commit for which it was made. A newer one that it covers may differ in files that the path filters do
 * not select, and the agent binds the plan to all files. Nothing is left to compare.
 */
export function originFor(source: SourceSpec, stage: Stage): SourceSpec {
  const planned = stage.kind === "apply" ? parseTrigger(stage.request.trigger) : undefined;
  if (!source.git || !planned) return source;
  const { compareWith: _, ...git } = source.git;
  return { ...source, git: { ...git, ref: planned.revision } };
}
