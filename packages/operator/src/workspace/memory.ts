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
import { isBackedOff, type KnownCertificate, type Retry, type WorkspaceView, type WrittenStatefulSet } from "./view.ts";

interface RememberedRetry {
  readonly failures: number;
  /** Infinity while an attempt is in progress. */
  readonly dueAt: number;
  /** When the attempt in progress began. */
  readonly since?: number;
  /** Of the spec that failed: a new spec starts from zero. */
  readonly generation: number;
  /** The reconcile request of the last attempt: a new request does not wait. */
  readonly request: string;
}

interface RememberedCertificate extends KnownCertificate {
  /** On the monotonic clock. */
  readonly readAt: number;
}

export interface WorkspaceMemory {
  readonly retry?: RememberedRetry;
  readonly written?: WrittenStatefulSet;
  readonly conflictSince?: number;
  readonly certificate?: RememberedCertificate;
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
  const { failures, dueAt, since } = retry;
  const isRequested = Number.isFinite(dueAt) && retry.request !== reconcileRequest({ metadata });
  const onWallClock = (time: number): number => now + (time - monotonic);
  return {
    failures,
    at: isRequested ? 0 : onWallClock(dueAt),
    ...(since !== undefined && { since: onWallClock(since) }),
  };
}

/** A start and an update take many passes, and nothing has a reason to change the certificate in between. */
const certificateMs = 60_000;

/** The certificate that a recent pass has read or written; undefined if it must be read. */
export function knownCertificate(
  { memory, monotonic }: WorkspaceMoment,
  maxAgeMs = certificateMs,
): KnownCertificate | undefined {
  const known = memory?.certificate;
  return known && monotonic - known.readAt < maxAgeMs ? { ca: known.ca, cert: known.cert } : undefined;
}

/** One that is not valid is read again. */
function rememberedCertificate(
  { certificate, knownCertificate: known }: WorkspaceView,
  { memory, monotonic }: WorkspaceMoment,
): RememberedCertificate | undefined {
  if (certificate !== "current" || !known) return undefined;
  const { ca, cert } = known;
  const isSame = memory?.certificate?.ca === ca && memory.certificate.cert === cert;
  return isSame ? memory.certificate : { ca, cert, readAt: monotonic };
}

export function remember(view: WorkspaceView, plan: WorkspacePlan, moment: WorkspaceMoment): WorkspaceMemory {
  const { written, inputs } = view;
  const retry = rememberedRetry(view, plan, moment);
  const { kind } = plan.outcome;
  const conflictSince = conflictStart(view, { isUnchanged: kind === "unchanged", isBlocked: kind === "blocked" });
  const certificate = rememberedCertificate(view, moment);
  const losesState = inputs ? inputs.ephemeralState !== undefined : moment.memory?.losesState;
  return {
    ...(retry && { retry }),
    ...(written && { written }),
    ...(conflictSince !== undefined && { conflictSince }),
    ...(certificate && { certificate }),
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
  if (isRetrying) return { ...onMonotonicClock({ failures: known?.failures ?? 0, at: Infinity }), since: monotonic };
  if (isBackedOff(view) && !known) return onMonotonicClock(retryWhileBackedOff(view));
  return settled.has(outcome.kind) ? undefined : known;
}

/** The preparation that failed is repeated in its pod, or in a new one. */
const isAttempted = ({ isRetried }: WorkspaceView, { steps }: WorkspacePlan): boolean =>
  isRetried === true || steps.some(({ kind }) => kind === "applyObjects");

export const isAttemptInProgress = (memory: WorkspaceMemory | undefined): boolean => memory?.retry?.dueAt === Infinity;

/** An input has changed, which may be why the preparation failed: the next attempt is due immediately. */
export function retryImmediately(memory: Map<Key, WorkspaceMemory>, key: Key): void {
  const known = memory.get(key);
  if (known?.retry) memory.set(key, { ...known, retry: { ...known.retry, dueAt: 0 } });
}

const reconcileRequest = ({ metadata }: Pick<Workspace, "metadata">): string =>
  metadata.annotations?.[reconcileRequestAnnotation] ?? "";
