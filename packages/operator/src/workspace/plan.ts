/**
 * What to do next about a Workspace. Pure.
 *
 *            ┌──────────────────── a new template, or what the pod reads has changed ─────────────────┐
 *            ▼                                                                                        │
 *   new ──▶ waiting ──▶ preparing ──▶ ready ──────────────────────────────────────────────────────────┤
 *            ▲           ▲  │           │ ▲                                                           │
 *            │   again   │  ▼           │ │ a new commit or configuration: prepared again, same pod   │
 *            │          failed          │ └───────────────────────────────────────────────────────────┤
 *            │                          ▼ idle for its timeout, or a pod elsewhere finds no node      │
 *            └──── an Update waits ── asleep                                                          │
 *                  or the spec changed                                                                │
 *                                     an Update runs in the pod: all of this waits for its end ───────┘
 *
 * Asleep is ready: an Update is all it takes to wake it. Only with an address can an Update start.
 * What has failed for as long as others sleep is put away: without a pod between one try and the next.
 */
import { describeProblems, stackKind, workspaceKind } from "@pko/api";
import { refKey, type Key, type Occupied } from "@pko/kube";
import { assertNever, type Prepared, type PrepareRequest } from "@pko/rpc";
import type { CertificateState } from "@pko/rpc/pki";

import type { AgentPod, Preparation } from "../agents/agents.ts";
import { conflictMessage, conflictPauseMs, isForeign, ownershipConflict } from "../ownership.ts";
import type { BuiltObjects } from "./build-objects.ts";
import type { Outcome, Warning } from "./outcome.ts";
import { lostNodeAt, lostNodeMessage } from "../lost-node.ts";
import { leastIdleMs } from "./room.ts";
import {
  addressOf,
  hasWork,
  idleSince,
  isAsleep,
  isFailed,
  isPrepared,
  isPutAway,
  isServing,
  readyOf,
  runOf,
  sinceTransitionMs,
  type PodFacts,
  type WorkspaceView,
} from "./view.ts";

export type Step =
  /** Written to its Secret; the kubelet brings it to the pod, and the agent loads it. */
  | { readonly kind: "issueCertificate"; readonly because: Exclude<CertificateState, "current"> }
  /** Judged by a dry run first: what the API server refuses becomes the outcome. */
  | { readonly kind: "applyObjects"; readonly objects: BuiltObjects }
  /** The StatefulSet alone, as it should be; not if it is gone. */
  | { readonly kind: "mendStatefulSet"; readonly uid: string; readonly objects: BuiltObjects }
  /** `putAwayFor`: the generation of the Workspace whose preparation fails. */
  | { readonly kind: "sleep"; readonly uid: string; readonly putAwayFor?: number }
  | { readonly kind: "deletePod"; readonly uid: string; readonly graceSeconds?: number }
  /** Makes the StatefulSet's controller retry the creation of the pod at once. `uid`: of the StatefulSet. */
  | { readonly kind: "retryPod"; readonly uid: string }
  /** `again`: a preparation that has failed is asked for once more. */
  | { readonly kind: "prepare"; readonly pod: AgentPod; readonly request: PrepareRequest; readonly again: boolean }
  | { readonly kind: "forget" }
  | { readonly kind: "look"; readonly key: Key };

export interface Plan {
  readonly steps: readonly Step[];
  /** Where a step prepares, what comes of that takes its place: `conclude`. */
  readonly outcome: Outcome;
  /** When to look again though nothing has changed. */
  readonly lookAt?: number;
}

type Decision = Omit<Plan, "lookAt"> & { readonly afterMs?: number };
type Check = (view: WorkspaceView) => Decision | undefined;

const checks: readonly Check[] = [
  deleting,
  specInvalid,
  nodeLost,
  endingForTooLong,
  updateRunning,
  asleep,
  putAway,
  sleepDue,
  templateInvalid,
  nothingToPrepare,
  referencesMissing,
  aboutToRoll,
  objectsDiffer,
  objectsTouched,
  objectsNotSeen,
  outdatedPodStuck,
  podNotThere,
  podOutdated,
  podComing,
  podNotUp,
];

export function planWorkspace(view: WorkspaceView): Plan {
  const decision = decide(view);
  return planned(view, { ...decision, steps: [...certificateStep(view), ...decision.steps] });
}

function decide(view: WorkspaceView): Decision {
  for (const check of checks) {
    const decision = check(view);
    if (decision) return decision;
  }
  return prepare(view);
}

/** Whatever else is decided: a running Update must not wait for its own end to be reached again. */
function certificateStep({ certificate = "current" }: WorkspaceView): Step[] {
  return certificate === "current" ? [] : [{ kind: "issueCertificate", because: certificate }];
}

function planned(view: WorkspaceView, { afterMs, ...plan }: Decision): Plan {
  const lostAt = lostNodeAt(view.pod?.overdue, view.lostNodeAfterMs);
  const lookAt = Math.min(view.now + (afterMs ?? Infinity), lostAt > view.now ? lostAt : Infinity);
  return { ...plan, ...(Number.isFinite(lookAt) && { lookAt }) };
}

/** How long things are left alone, in milliseconds. */
const pauses = {
  /** Secrets are not watched: they are read again while a pod is up. */
  recheck: 5 * 60_000,
  /** Something is missing that may be on its way. */
  missing: 5000,
  /** An Update that saw the workspace ready may still begin. */
  settle: 2000,
  /** A run whose pod is down for longer is not waited for. */
  lostRun: 120_000,
  /** An agent that has just been started may not listen yet. */
  connect: 10_000,
  /** A pod without a run has nothing to end in order. */
  ending: 60_000,
  /** In case no watch tells. */
  safety: 60_000,
} as const;

const report = (outcome: Outcome, afterMs?: number, steps: readonly Step[] = []): Decision => ({
  steps,
  outcome,
  ...(afterMs !== undefined && { afterMs }),
});

function deleting({ workspace }: WorkspaceView): Decision | undefined {
  return workspace.metadata.deletionTimestamp
    ? report({ kind: "deleting" }, undefined, [{ kind: "forget" }])
    : undefined;
}

function specInvalid({ spec, pod }: WorkspaceView): Decision | undefined {
  if (spec.ok) return undefined;
  // The certificate of a pod has to be renewed in time, also while nobody corrects the spec.
  const afterMs = pod ? pauses.safety : undefined;
  return report({ kind: "refused", message: describeProblems(spec.problems) }, afterMs);
}

/** Another pod can only follow when this one is gone. Of a run that may be in it, the Update tells. */
function nodeLost(view: WorkspaceView): Decision | undefined {
  const { pod, now, lostNodeAfterMs } = view;
  if (!pod?.overdue || runOf(view) || isAsleep(view) || isPutAway(view)) return undefined;
  if (now < lostNodeAt(pod.overdue, lostNodeAfterMs)) return undefined;
  const consequence = "the workspace cannot have another pod until this one is removed";
  return report({ kind: "nodeLost", message: lostNodeMessage(pod.overdue, consequence) }, pauses.safety);
}

/** The grace is for runs. An agent that does not heed its end would hold its node's resources for all of it. */
function endingForTooLong(view: WorkspaceView): Decision | undefined {
  const { pod, now } = view;
  if (pod?.endingSince === undefined || runOf(view) || now - pod.endingSince < pauses.ending) return undefined;
  const outcome: Outcome = isAsleep(view) ? { kind: "asleep" } : { kind: "rolling", message: pod.explanation.message };
  return report(outcome, pauses.ending, [{ kind: "deletePod", uid: pod.agent.uid, graceSeconds: 5 }]);
}

function updateRunning(view: WorkspaceView): Decision | undefined {
  const { pod, workspace } = view;
  const run = runOf(view);
  if (!run || !pod || pod.isDeleting) return undefined;
  if (!pod.isUp) {
    return sinceTransitionMs(view) < pauses.lostRun ? report(explained(pod), pauses.missing) : undefined;
  }
  // It has not begun, and never would: only preparing is safe, since it may begin at any moment after that.
  if (run.isUnprepared) return nothingRequested(view) ?? prepare(view);
  if (isServing(view)) return report({ kind: "unchanged" }, pauses.safety);
  const why = workspace.status?.observedGeneration === workspace.metadata.generation ? "the workspace" : "the new spec";
  return report({ kind: "held", message: `${why} waits for the end of the update ${run.name}` }, pauses.safety);
}

function asleep(view: WorkspaceView): Decision | undefined {
  // Whether the pod has really ended is looked at once more.
  const afterMs = view.pod ? pauses.ending : undefined;
  return isAsleep(view) ? report({ kind: "asleep" }, afterMs, [{ kind: "forget" }]) : undefined;
}

function putAway(view: WorkspaceView): Decision | undefined {
  if (!isPutAway(view)) return undefined;
  const { now, retryAt = now + longestRetryMs } = view;
  return report({ kind: "unchanged" }, view.pod ? pauses.ending : retryAt - now, [{ kind: "forget" }]);
}

function sleepDue(view: WorkspaceView): Decision | undefined {
  const { statefulSet, workspace } = view;
  if (!statefulSet || (sleepsAt(view) ?? Infinity) > view.now) return undefined;
  if (isFailed(workspace)) {
    const putAwayFor = workspace.metadata.generation ?? 0;
    const steps: Step[] = [{ kind: "sleep", uid: statefulSet.uid, putAwayFor }, { kind: "forget" }];
    return report({ kind: "unchanged" }, pauses.settle, steps);
  }
  // First the word, then the deed: an Update may be about to begin.
  if (workspace.status?.address !== undefined) return report({ kind: "asleep" }, pauses.settle);
  return report({ kind: "asleep" }, undefined, [{ kind: "sleep", uid: statefulSet.uid }, { kind: "forget" }]);
}

/** Undefined for a workspace that is not to sleep as things are. */
function sleepsAt(view: WorkspaceView): number | undefined {
  const { workspace, updates, idleTimeoutMs, inputs, yielding } = view;
  if (!(isPrepared(workspace) || isGivenUp(view)) || hasWork(updates)) return undefined;
  if (idleTimeoutMs === 0 || inputs?.losable) return undefined;
  const { namespace = "", name = "" } = workspace.metadata;
  // Another pod finds no node, and nobody else has been idle for longer.
  const isPressed = yielding.includes(refKey({ namespace, name }));
  return idleSince(workspace, updates) + (isPressed ? Math.min(leastIdleMs, idleTimeoutMs) : idleTimeoutMs);
}

/** It has failed and is not being tried right now; what its template would keep or lose is known. */
function isGivenUp({ workspace, inputs, retryAt = Infinity, now }: WorkspaceView): boolean {
  return isFailed(workspace) && inputs?.pod.ok === true && retryAt > now && Number.isFinite(retryAt);
}

function templateInvalid({ inputs }: WorkspaceView): Decision | undefined {
  if (!inputs || inputs.pod.ok) return undefined;
  return report({ kind: "refused", message: inputs.pod.problems.join("\n") }, pauses.recheck);
}

function nothingToPrepare(view: WorkspaceView): Decision | undefined {
  // What is prepared stays good though its source is gone.
  return isServing(view) ? undefined : nothingRequested(view);
}

function nothingRequested({ inputs }: WorkspaceView): Decision | undefined {
  if (!inputs || inputs.requested.ok) return undefined;
  const { message, soon } = inputs.requested;
  return report({ kind: "refused", message }, soon ? pauses.missing : pauses.safety);
}

function referencesMissing(view: WorkspaceView): Decision | undefined {
  const { inputs, pod } = view;
  const [first, ...others] = inputs?.missing ?? [];
  // A pod that is up has read them: it is not replaced by one that could not start.
  if (first === undefined || pod?.isUp) return undefined;
  const message = others.length > 0 ? `${first} (and ${others.length} more)` : first;
  return report({ kind: "waiting", message, isStuck: true }, pauses.missing);
}

/** The objects to write, where those that are there are not as they should be. */
function dueObjects({ inputs, statefulSet, pod }: WorkspaceView): BuiltObjects | undefined {
  if (!inputs?.pod.ok || (inputs.missing.length > 0 && pod?.isUp)) return undefined;
  const { objects } = inputs.pod;
  return statefulSet?.builtHash === objects.hash && statefulSet.replicas === 1 ? undefined : objects;
}

/** First the word that it is not ready, then the deed: an Update that waits may be about to begin in the old pod. */
function aboutToRoll(view: WorkspaceView): Decision | undefined {
  const { workspace, updates, pod } = view;
  if (!dueObjects(view) || !pod?.isUp || pod.isDeleting || !hasWork(updates)) return undefined;
  const saidSo = readyOf(workspace)?.status === "False" && sinceTransitionMs(view) >= pauses.settle;
  if (saidSo && workspace.status?.address === undefined) return undefined;
  return report({ kind: "rolling", message: "the pod is about to be replaced" }, pauses.settle);
}

function objectsDiffer(view: WorkspaceView): Decision | undefined {
  const objects = dueObjects(view);
  if (!objects) return undefined;
  if (view.statefulSet?.isDeleting) {
    return report(
      { kind: "waiting", message: "the former StatefulSet is being deleted", isStuck: false },
      pauses.missing,
    );
  }
  const outcome: Outcome =
    view.pod && !view.pod.isDeleting
      ? { kind: "rolling", message: "the pod is being replaced: its template, or what it reads, has changed" }
      : { kind: "waiting", message: "the pod is being made", isStuck: false };
  return report(outcome, pauses.safety, [{ kind: "applyObjects", objects }]);
}

/** Somebody else has changed the StatefulSet, or may have while nobody looked: what is ours is written once more. */
function objectsTouched(view: WorkspaceView): Decision | undefined {
  const { inputs, statefulSet, pod, workspace, writtenGeneration = 0 } = view;
  if (!inputs?.pod.ok || !statefulSet || statefulSet.isDeleting || statefulSet.generation <= writtenGeneration) {
    return undefined;
  }
  if (inputs.missing.length > 0 && pod?.isUp) return undefined;
  const outcome: Outcome = workspace.status
    ? { kind: "unchanged" }
    : { kind: "waiting", message: "the pod is being made", isStuck: false };
  const mend: Step = { kind: "mendStatefulSet", uid: statefulSet.uid, objects: inputs.pod.objects };
  return report(outcome, 0, [mend]);
}

/** Until its controller has looked at the StatefulSet, nobody can tell whether the pod stays. */
function objectsNotSeen({ statefulSet, pod }: WorkspaceView): Decision | undefined {
  if (!statefulSet || statefulSet.updateRevision !== undefined || !pod || pod.isDeleting) return undefined;
  return report({ kind: "rolling", message: "the pod is being replaced" }, pauses.safety);
}

/** A StatefulSet may wait for ever for a broken pod of an old template before it makes the one that would work. */
function outdatedPodStuck(view: WorkspaceView): Decision | undefined {
  const { pod } = view;
  if (!pod || pod.isUp || pod.isDeleting || !isOutdated(view)) return undefined;
  const outcome: Outcome = { kind: "rolling", message: `the pod is being replaced: ${pod.explanation.message}` };
  return report(outcome, pauses.safety, [{ kind: "deletePod", uid: pod.agent.uid }]);
}

function isOutdated({ pod, statefulSet }: WorkspaceView): boolean {
  const wanted = statefulSet?.updateRevision;
  return wanted !== undefined && pod !== undefined && pod.revision !== wanted;
}

function podNotThere(view: WorkspaceView): Decision | undefined {
  if (view.pod) return undefined;
  const admission = view.inputs?.admission;
  switch (admission?.kind) {
    case "occupied":
      return { steps: [], ...blocked(view, [admission.occupied]) };
    case "rejected": {
      const message = `the pod is not let in: ${admission.message}`;
      return report({ kind: "waiting", message, isStuck: true }, pauses.missing);
    }
    case "admitted":
    case undefined:
      return report({ kind: "waiting", message: "the pod is being made", isStuck: false }, pauses.missing, retry(view));
    default:
      return assertNever(admission);
  }
}

/** The StatefulSet's controller retries ever more rarely, and nobody tells it that the pod's name is free again. */
function retry({ workspace, statefulSet, inputs }: WorkspaceView): Step[] {
  const stalled = workspace.status?.conditions?.find(({ type }) => type === "Stalled");
  if (stalled?.reason !== ownershipConflict || inputs?.admission?.kind !== "admitted" || !statefulSet) return [];
  return [{ kind: "retryPod", uid: statefulSet.uid }];
}

function podOutdated(view: WorkspaceView): Decision | undefined {
  if (!view.pod?.isUp || !isOutdated(view)) return undefined;
  return report({ kind: "rolling", message: "the pod is being replaced" }, pauses.safety);
}

/** Asked before it is known to listen: it may have listened for a second by the time the kubelet tells that it runs. */
function podComing(view: WorkspaceView): Decision | undefined {
  const { pod, inputs } = view;
  if (!pod?.agent.isComing || pod.isUp || !inputs?.requested.ok) return undefined;
  const { request } = inputs.requested;
  const prepare = { kind: "prepare", pod: pod.agent, request, again: false } as const;
  return report(explained(pod), pauses.safety, [prepare]);
}

function podNotUp(view: WorkspaceView): Decision | undefined {
  const { pod, yielding } = view;
  if (!pod || (pod.isUp && !pod.isDeleting)) return undefined;
  if (!pod.isUnschedulable) return report(explained(pod), pauses.safety);
  // Others may become idle at any time.
  if (yielding.length === 0) return report(explained(pod), pauses.missing);
  const { message } = pod.explanation;
  const outcome: Outcome = { kind: "waiting", message: `${message}; idle workspaces make room`, isStuck: true };
  return report(
    outcome,
    pauses.missing,
    yielding.map((key) => ({ kind: "look", key }) as const),
  );
}

function explained({ explanation, isDeleting }: PodFacts): Outcome {
  const { message, stuck } = explanation;
  return isDeleting ? { kind: "rolling", message } : { kind: "waiting", message, isStuck: stuck };
}

function prepare(view: WorkspaceView): Decision {
  const { pod, inputs, now, retryAt } = view;
  if (!pod || !inputs?.requested.ok) return report({ kind: "unchanged" }, pauses.recheck);
  const { request } = inputs.requested;
  const again = retryAt !== undefined && now >= retryAt;
  return report({ kind: "preparing" }, pauses.safety, [{ kind: "prepare", pod: pod.agent, request, again }]);
}

/** What the steps have brought to light. */
export interface Performed {
  /** A store does not show what the API server has: the steps that are left were not taken. */
  readonly isStale?: boolean;
  /** The API server's own words on what it would not take. */
  readonly refusal?: string;
  /** Objects that have the names that were to be written, and are not this Workspace's. */
  readonly occupied?: readonly Occupied[];
  readonly preparation?: Preparation;
  /** The StatefulSet as the API server has it now. */
  readonly written?: { readonly uid: string; readonly generation: number };
  /** The steps that were carried out. */
  readonly made?: readonly Step[];
}

/** The plan as it is after its steps. */
export function conclude(view: WorkspaceView, plan: Plan, { refusal, occupied, preparation }: Performed): Plan {
  if (occupied !== undefined) return planned(view, { ...plan, ...blocked(view, occupied) });
  if (refusal !== undefined) {
    return planned(view, { ...plan, outcome: { kind: "refused", message: refusal }, afterMs: pauses.safety });
  }
  if (!preparation || (isComing(view) && isUnanswered(preparation))) return plan;
  const outcome = outcomeOf(view, preparation);
  return planned(view, { ...plan, outcome, afterMs: pauseAfter(view, outcome) });
}

function blocked(view: WorkspaceView, occupied: readonly Occupied[]): Pick<Decision, "outcome" | "afterMs"> {
  const message = conflictMessage(occupied, claimantOf(view));
  const afterMs = conflictPauseMs(occupied, view.now - (view.conflictSince ?? view.now));
  const outcome: Outcome = isForeign(occupied)
    ? { kind: "blocked", message }
    : { kind: "waiting", message, isStuck: false };
  return { outcome, afterMs };
}

/** The Workspace of a Stack has its name from the Stack. */
function claimantOf({ workspace }: WorkspaceView): { readonly kind: string; readonly name: string } {
  const { name = "", ownerReferences = [] } = workspace.metadata;
  const stack = ownerReferences.find(({ kind, controller }) => controller && kind === stackKind.kind);
  return stack ?? { kind: workspaceKind.kind, name };
}

const isComing = ({ pod }: WorkspaceView): boolean => pod !== undefined && !pod.isUp;

const isUnanswered = (preparation: Preparation): boolean =>
  preparation.state === "unreachable" || (preparation.state === "running" && preparation.phase === undefined);

function outcomeOf(view: WorkspaceView, preparation: Preparation): Outcome {
  switch (preparation.state) {
    case "running":
      return stillWorking(view) ?? { kind: "preparing", ...(preparation.phase && { phase: preparation.phase }) };
    case "busy":
      return isServing(view)
        ? { kind: "unchanged" }
        : { kind: "held", message: `the workspace waits for the end of a run: ${preparation.message}` };
    case "unreachable": {
      const isFresh = view.now - preparation.sinceMs < pauses.connect;
      const { message } = preparation;
      return isFresh ? (stillWorking(view) ?? { kind: "preparing" }) : { kind: "unreachable", message };
    }
    case "done":
      return preparation.result.ok
        ? ready(view, preparation.result.prepared)
        : failed(view, preparation.result.failure);
    default:
      return assertNever(preparation);
  }
}

/** A look at what is prepared already, or one more try of what has failed: status keeps its word until that is known. */
function stillWorking(view: WorkspaceView): Outcome | undefined {
  const isRetry = view.retryAt !== undefined && isFailed(view.workspace);
  return isServing(view) || isRetry ? { kind: "unchanged" } : undefined;
}

function failed(view: WorkspaceView, failure: Extract<Outcome, { kind: "failed" }>["failure"]): Outcome {
  return failure.reason === "superseded" ? (stillWorking(view) ?? { kind: "preparing" }) : { kind: "failed", failure };
}

function ready({ pod, inputs }: WorkspaceView, { pulumiVersion, warning: ofStack }: Prepared): Outcome {
  const warning = losing(inputs?.losable) ?? (ofStack && { reason: "SecretsProviderIgnored", message: ofStack });
  return {
    kind: "ready",
    address: pod ? addressOf(pod.agent) : "",
    ...(pulumiVersion && { pulumiVersion }),
    ...(warning && { warning }),
  };
}

function losing(folder: string | undefined): Warning | undefined {
  if (folder === undefined) return undefined;
  const message = `the stack's state is in ${folder}, which no volume keeps: it is lost with the pod, so the pod is never put to sleep; mount a volume there, or use another backend`;
  return { reason: "StateNotKept", message };
}

function pauseAfter(view: WorkspaceView, outcome: Outcome): number {
  if (outcome.kind !== "ready" && outcome.kind !== "unchanged") return pauses.safety;
  // Not yet ready by its status: its time begins now.
  const sleeps = isPrepared(view.workspace) ? sleepsAt(view) : view.now + (view.idleTimeoutMs || Infinity);
  return Math.max(1000, Math.min(pauses.recheck, (sleeps ?? Infinity) - view.now));
}

/** The longest time between two tries of a preparation that fails. */
export const longestRetryMs = 10 * 60_000;
const retryPause = { transient: 10_000, lasting: 60_000 } as const;

/** How long to wait before a failed preparation is tried again. */
export function retryAfterMs(failure: Extract<Outcome, { kind: "failed" }>["failure"], attempts: number): number {
  const first = isTransient(failure) ? retryPause.transient : retryPause.lasting;
  return Math.min(longestRetryMs, first * 2 ** Math.min(attempts, 10));
}

/** The same request may well succeed later. */
export function isTransient({ reason }: Extract<Outcome, { kind: "failed" }>["failure"]): boolean {
  return reason === "sourceUnavailable" || reason === "backendUnavailable" || reason === "superseded";
}
