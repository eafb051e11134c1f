/** New commits that change nothing that a Stack's path filters select. Pure. */
import type { SkippedCommit, Stack } from "@pko/api";

import type { ChangedPaths, CommitPair, CompareWith } from "../../sources/source-view.ts";
import type { StackView } from "../view.ts";

/** What has to be known about a commit: nothing, or how it differs from another one, or it was compared before. */
export type NeededComparison =
  | { readonly kind: "none" }
  | { readonly kind: "known"; readonly changes: ChangedPaths }
  | { readonly kind: "commits"; readonly since: string; readonly pair: CommitPair };

const none: NeededComparison = { kind: "none" };
export const isCommitId = (revision: string): boolean => /^[0-9a-f]{40,64}$/.test(revision);

/**
 * The commit is compared with that of the last successful update. The selected files of a skipped commit are the same, so
 * comparing with that one is equivalent, and all Stacks that have skipped it share the comparison.
 */
export function neededComparison({ metadata, status }: Stack, commit: string): NeededComparison {
  const { lastUpdate: last, skippedCommit: skipped } = status ?? {};
  const since = last?.lastSuccessfulCommit ?? "";
  // After a failure, resources may be changed in part; and a changed spec runs in any case.
  const runsAnyway = last?.state !== "succeeded" || last.generation !== metadata.generation;
  if (runsAnyway || since === commit || !isCommitId(since)) return none;
  if (skipped?.since !== since) return { kind: "commits", since, pair: { from: since, to: commit } };
  if (skipped.commit === commit) return { kind: "known", changes: { since, paths: [] } };
  return { kind: "commits", since, pair: { from: skipped.commit, to: commit } };
}

/** Undefined if the revision is the one that was run, if it changes something, or if that is not known. */
export function skippedCommit(view: ComparedView): SkippedCommit | undefined {
  const { source, stack } = view;
  const last = stack.status?.lastUpdate;
  const since = source.kind === "ready" ? unchangedSince(view, source) : undefined;
  if (source.kind !== "ready" || since === undefined) return undefined;
  const isCurrent = last?.state === "succeeded" && last.lastSuccessfulCommit === since;
  return isCurrent ? { commit: source.revision, since } : undefined;
}

type ComparedView = Pick<StackView, "stack" | "source" | "workspace">;
type ReadySource = Extract<StackView["source"], { kind: "ready" }>;

/** The last successful revision, if no selected file differs from it, as the operator or the agent has found. */
function unchangedSince({ workspace }: ComparedView, { changes, uncompared, revision }: ReadySource) {
  if (changes) return changes.paths.length === 0 ? changes.since : undefined;
  if (!uncompared || workspace.kind !== "present" || workspace.state.kind !== "ready") return undefined;
  const { compareWith } = uncompared;
  const { git } = workspace.object.spec ?? {};
  const isAbout = git?.ref === revision && isSame(git.compareWith, compareWith);
  return isAbout && workspace.state.unchangedSince === compareWith.commit ? uncompared.since : undefined;
}

const isSame = (actual: CompareWith | undefined, { commit, pathFilters }: CompareWith): boolean =>
  actual?.commit === commit && JSON.stringify(actual.pathFilters) === JSON.stringify(pathFilters);
