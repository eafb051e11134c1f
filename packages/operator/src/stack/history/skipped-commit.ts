/** New commits that change nothing that a Stack's path filters select. Pure. */
import type { SkippedCommit, Stack } from "@pko/api";

import type { ChangedPaths, CommitPair } from "../../sources/source-view.ts";
import type { StackView } from "../view.ts";

/** What has to be known about a commit: nothing, or how it differs from another one, or it was compared before. */
export type NeededComparison =
  | { readonly kind: "none" }
  | { readonly kind: "known"; readonly changes: ChangedPaths }
  | { readonly kind: "commits"; readonly since: string; readonly pair: CommitPair };

const none: NeededComparison = { kind: "none" };
const commitId = /^[0-9a-f]{40,64}$/;

/**
 * The commit is compared with that of the last successful update. The selected files of a skipped commit are the same, so
 * comparing with that one is equivalent, and all Stacks that have skipped it share the comparison.
 */
export function neededComparison({ metadata, status }: Stack, commit: string): NeededComparison {
  const { lastUpdate: last, skippedCommit: skipped } = status ?? {};
  const since = last?.lastSuccessfulCommit ?? "";
  // After a failure, resources may be changed in part; and a changed spec runs in any case.
  const runsAnyway = last?.state !== "succeeded" || last.generation !== metadata.generation;
  if (runsAnyway || since === commit || !commitId.test(since)) return none;
  if (skipped?.since !== since) return { kind: "commits", since, pair: { from: since, to: commit } };
  if (skipped.commit === commit) return { kind: "known", changes: { since, paths: [] } };
  return { kind: "commits", since, pair: { from: skipped.commit, to: commit } };
}

/** Undefined if the revision is the one that was run, if it changes something, or if that is not known. */
export function skippedCommit(view: Pick<StackView, "stack" | "source">): SkippedCommit | undefined {
  const { source, stack } = view;
  const last = stack.status?.lastUpdate;
  if (source.kind !== "ready" || source.changes?.paths.length !== 0) return undefined;
  const { since } = source.changes;
  const isCurrent = last?.state === "succeeded" && last.lastSuccessfulCommit === since;
  return isCurrent ? { commit: source.revision, since } : undefined;
}
