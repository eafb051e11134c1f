/**
 * What this process remembers about a Workspace between passes. It is lost at a restart: the next process makes the first
 * attempt of a failed preparation immediately, and restores the StatefulSet once.
 *
 * Due times are on the monotonic clock. A view has them as wall-clock times, relative to its own `now`, so that a change of the
 * node's clock does not move a retry.
 */
import { reconcileRequestAnnotation, type Workspace } from "@pko/api";
import type { Key, Moment } from "@pko/kube";

import { conflictStart } from "../shared/objects/ownership.ts";
import type { Outcome } from "./outcome.ts";
import { isRetryDue, isRetryScheduled, retryAfterFailure, retryWhileBackedOff } from "./prepare/retry.ts";
import type { WorkspacePlan } from "./steps.ts";
import { isBackedOff, isServing, type Retry, type WorkspaceView, type WrittenStatefulSet } from "./view.ts";

interface RememberedRetry {
  readonly failures: number;
  /** Infinity while an attempt is in progress. */
  readonly dueAt: number;
  /** Of the spec that failed: a new spec starts from zero. */
  readonly generation: number;
  /** The reconcile request of the last attempt: a new request does not wait. */
  readonly request: string;
}

export interface WorkspaceMemory {
  readonly retry?: RememberedRetry;
  readonly written?: WrittenStatefulSet;
  readonly conflictSince?: number;
  /** Until when, on the monotonic clock, the certificate of a pod that starts is not read again. */
  readonly certificateUntil?: number;
  /** The workspace would lose its backend's state with its pod, so it makes no room for others. */
  readonly losesState?: true;
}

type WorkspaceMoment = Pick<Moment<WorkspaceMemory>, "now" | "monotonic" | "memory">;

/** The next attempt, for a view of this Workspace; undefined if none of its current spec has failed. */
export function retryOf(
  { metadata }: Pick<Workspace, "metadata">,
  { memory, now, monotonic }: WorkspaceMoment,
): Retry | undefined {
  const retry = memory?.retry;
  if (retry?.generation !== (metadata.generation ?? 0)) return undefined;
  const { failures, dueAt } = retry;
  const isRequested = Number.isFinite(dueAt) && retry.request !== reconcileRequest({ metadata });
  return { failures, at: isRequested ? 0 : now + (dueAt - monotonic) };
}

/** A start takes several passes, and nothing has a reason to change the certificate in between. */
const certificateMs = 10_000;

/** Whether a recent pass has found the certificate valid. While the workspace serves, each pass reads it. */
export const isCertificateKnown = (
  view: Pick<WorkspaceView, "workspace" | "pod">,
  { memory, monotonic }: WorkspaceMoment,
): boolean => monotonic < (memory?.certificateUntil ?? 0) && !isServing(view);

function certificateUntil(view: WorkspaceView, { memory, monotonic }: WorkspaceMoment): number | undefined {
  if (view.certificate !== "current") return undefined;
  const known = memory?.certificateUntil ?? 0;
  return monotonic < known ? known : monotonic + certificateMs;
}

export function remember(view: WorkspaceView, plan: WorkspacePlan, moment: WorkspaceMoment): WorkspaceMemory {
  const { written, inputs } = view;
  const retry = rememberedRetry(view, plan, moment);
  const { kind } = plan.outcome;
  const conflictSince = conflictStart(view, { isUnchanged: kind === "unchanged", isBlocked: kind === "blocked" });
  const certificate = settled.has(kind) ? undefined : certificateUntil(view, moment);
  const losesState = inputs ? inputs.ephemeralState !== undefined : moment.memory?.losesState;
  return {
    ...(retry && { retry }),
    ...(written && { written }),
    ...(conflictSince !== undefined && { conflictSince }),
    ...(certificate !== undefined && { certificateUntil: certificate }),
    ...(losesState && { losesState }),
  };
}

/** The outcomes after which there is nothing to retry. */
const settled: ReadonlySet<Outcome["kind"]> = new Set<Outcome["kind"]>([
  "ready",
  "idle",
  "misconfigured",
  "blocked",
  "deleting",
]);

function rememberedRetry(
  view: WorkspaceView,
  plan: WorkspacePlan,
  { memory, monotonic }: WorkspaceMoment,
): RememberedRetry | undefined {
  const { workspace, retry, now } = view;
  const { outcome } = plan;
  // A retry of another generation is not in the view.
  const known = retry && memory?.retry;
  const isRetrying = isRetryDue(view) && isAttempted(view, plan);
  const onMonotonicClock = ({ failures, at }: Retry): RememberedRetry => ({
    failures,
    dueAt: monotonic + (at - now),
    generation: workspace.metadata.generation ?? 0,
    request: known && !isRetrying ? known.request : reconcileRequest(workspace),
  });
  if (outcome.kind === "failed") {
    // What is remembered already has the right time, even if an input changed during this pass.
    return known && isRetryScheduled(view) ? known : onMonotonicClock(retryAfterFailure(view, outcome.failure));
  }
  if (isRetrying) return onMonotonicClock({ failures: known?.failures ?? 0, at: Infinity });
  if (isBackedOff(view) && !known) return onMonotonicClock(retryWhileBackedOff(view));
  return settled.has(outcome.kind) ? undefined : known;
}

/** The preparation that failed is repeated in its pod, or in a new one. */
const isAttempted = ({ isRetried }: WorkspaceView, { steps }: WorkspacePlan): boolean =>
  isRetried === true || steps.some(({ kind }) => kind === "applyObjects");

/** An input has changed, which may be why the preparation failed: the next attempt is due immediately. */
export function retryImmediately(memory: Map<Key, WorkspaceMemory>, key: Key): void {
  const known = memory.get(key);
  if (known?.retry) memory.set(key, { ...known, retry: { ...known.retry, dueAt: 0 } });
}

const reconcileRequest = ({ metadata }: Pick<Workspace, "metadata">): string =>
  metadata.annotations?.[reconcileRequestAnnotation] ?? "";
