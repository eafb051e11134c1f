/** When a failed preparation is retried. Pure. */
import type { PrepareFailure } from "@pko/rpc";

import { jittered } from "../../shared/pauses.ts";
import type { Retry, WorkspaceView } from "../view.ts";

/** The longest time between two attempts. */
const longestRetryMs = 10 * 60_000;
const firstRetryMs = { transient: 10_000, permanent: 60_000 } as const;

/** The delay after an attempt that failed, and `failures` before it. */
function retryAfterMs(failure: PrepareFailure, failures: number): number {
  const first = isTransient(failure) ? firstRetryMs.transient : firstRetryMs.permanent;
  return Math.min(longestRetryMs, first * 2 ** Math.min(failures, 10));
}

/** Whether the same request may succeed later. */
export function isTransient({ reason }: PrepareFailure): boolean {
  return reason === "sourceUnavailable" || reason === "backendUnavailable" || reason === "superseded";
}

type RetryView = Pick<WorkspaceView, "retry" | "now">;
type FailedView = RetryView & { readonly workspace: { readonly metadata: { readonly uid?: string } } };

/** Workspaces that failed together, for example because of an outage, are not retried together. */
const spread = ({ workspace }: FailedView, ms: number): number => jittered(ms, workspace.metadata.uid ?? "");

export const isRetryDue = ({ retry, now }: RetryView): boolean => retry !== undefined && retry.at <= now;

/** An attempt failed, and the next one is not due yet. */
export const isRetryScheduled = ({ retry, now }: RetryView): boolean =>
  retry !== undefined && retry.at > now && Number.isFinite(retry.at);

/** The retry of a preparation that failed: one that is already scheduled stays. */
export function retryAfterFailure(view: FailedView, failure: PrepareFailure): Retry {
  const { retry, now } = view;
  if (retry && isRetryScheduled(view)) return retry;
  const failures = retry?.failures ?? 0;
  return { failures: failures + 1, at: now + spread(view, retryAfterMs(failure, failures)) };
}

/** A Workspace that an earlier process scaled to zero is not retried immediately: there may be many. */
export const retryWhileBackedOff = (view: FailedView): Retry =>
  view.retry ?? { failures: 1, at: view.now + spread(view, longestRetryMs) };
