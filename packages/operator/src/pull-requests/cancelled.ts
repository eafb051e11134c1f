/** Heads of pull requests whose preview ends without a result: the forge must not show forever that it runs. Pure. */
import { maxCancelledPreviews, type CancelledPreview, type Stack } from "@pko/api";

import type { PullRequestsView } from "./view.ts";

interface Cancellations {
  /** Until the forge shows that they have no result. */
  readonly cancelled: readonly CancelledPreview[];
  /** Those whose run no longer exists, so that nobody else reports them. */
  readonly due: readonly CancelledPreview[];
}

/** `wanted`: the heads that are previewed. */
export function cancellations(
  { stack, runs, answered = [] }: Pick<PullRequestsView, "stack" | "runs" | "answered">,
  wanted: readonly CancelledPreview[],
): Cancellations {
  const unwanted = runs.filter((run) => !run.isReported);
  const all = [
    ...(stack.status?.cancelledPreviews ?? []),
    ...unwanted.map(({ number, commit }) => ({ number, commit })),
  ];
  const reported = runs.filter((run) => run.isReported);
  const done = [...answered, ...reported];
  // Two pull requests may have the same head, and a commit has one status for all of them: that of a preview that is wanted counts.
  const commits = new Set(wanted.map(({ commit }) => commit));
  const open = all.filter(
    (each, index) => all.findIndex(isSame(each)) === index && !done.some(isSame(each)) && !commits.has(each.commit),
  );
  const cancelled = open.slice(-maxCancelledPreviews);
  return { cancelled, due: cancelled.filter((each) => !runs.some(isSame(each))) };
}

/** Whether the status of the Stack shows them, as far as it has room. */
export function areRecorded({ status }: Stack, cancelled: readonly CancelledPreview[]): boolean {
  const recorded = status?.cancelledPreviews ?? [];
  return recorded.length >= maxCancelledPreviews || cancelled.every((each) => recorded.some(isSame(each)));
}

const isSame =
  (one: CancelledPreview) =>
  (other: CancelledPreview): boolean =>
    one.number === other.number && one.commit === other.commit;
