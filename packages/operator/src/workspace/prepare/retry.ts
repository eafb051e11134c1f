/** When a failed preparation is retried. Pure. */
import type { PrepareFailure } from "@pko/rpc";

import type { WorkspaceView } from "../view.ts";

/** The longest time between two attempts. */
export const longestRetryMs = 10 * 60_000;
const firstRetryMs = { transient: 10_000, permanent: 60_000 } as const;

/** The delay after an attempt that failed, and `failures` before it. */
export function retryAfterMs(failure: PrepareFailure, failures: number): number {
  const first = isTransient(failure) ? firstRetryMs.transient : firstRetryMs.permanent;
  return Math.min(longestRetryMs, first * 2 ** Math.min(failures, 10));
}

/** Whether the same request may succeed later. */
export function isTransient({ reason }: PrepareFailure): boolean {
  return reason === "sourceUnavailable" || reason === "backendUnavailable" || reason === "superseded";
}

type RetryView = Pick<WorkspaceView, "retry" | "now">;

export const isRetryDue = ({ retry, now }: RetryView): boolean => retry !== undefined && retry.at <= now;

/** An attempt failed, and the next one is not due yet. */
export const isRetryScheduled = ({ retry, now }: RetryView): boolean =>
  retry !== undefined && retry.at > now && Number.isFinite(retry.at);

/** When the preparation that failed is attempted next: a time that is already set stays. */
export function nextRetryAt(view: RetryView, failure: PrepareFailure): number {
  const { retry, now } = view;
  return retry && isRetryScheduled(view) ? retry.at : now + retryAfterMs(failure, retry?.failures ?? 0);
}
