/** Everything that the rules for a Workspace may know, and pure helpers on it. */
import {
  wakeUntilAnnotation,
  type Condition,
  type NormalWorkspace,
  type Normalized,
  type Workspace,
  type WorkspaceReason,
} from "@pko/api";
import type { ApiObject, Key, Occupied } from "@pko/kube";
import type { Certificate, CertificateState } from "@pko/rpc/pki";
import type { Pod, PodTemplateSpec } from "kubernetes-types/core/v1";

import { agentPort, type AgentPod, type Preparation } from "../agents/agents.ts";
import type { PolledObject } from "../inputs/reference-poller.ts";
import type { SlotView } from "../shared/channels/slots.ts";
import type { OverduePod } from "../shared/pods/lost-node.ts";
import { findCondition } from "../shared/objects/conditions.ts";
import type { ClassView } from "../shared/workspace-classes.ts";
import type { ClassReason } from "./outcome.ts";
import type { BuiltObjects } from "./pod/build-objects.ts";
import type { Explanation } from "./pod/explain-pod.ts";
import type { Materials, Requested } from "./prepare/request.ts";
import { parseTimestamp } from "../shared/parse-timestamp.ts";

export interface PodFacts {
  readonly agent: AgentPod;
  /** The agent's container runs and can be dialed: the kubelet reports it, or the agent has responded. */
  readonly isUp: boolean;
  /** The container runs, but may still wait until the agent is copied. */
  readonly mayLackAgent?: true;
  readonly isDeleting: boolean;
  /** When its deletion was requested. */
  readonly terminatingSince?: number;
  /** Set if its kubelet does not respond in time. */
  readonly overdue?: OverduePod;
  readonly isUnschedulable: boolean;
  /** The revision of the StatefulSet's template from which it was created. */
  readonly revision: string;
  /** Why it is not up. */
  readonly explanation: Explanation;
  /** Its image, if it cannot start because the image has no shell. */
  readonly imageWithoutShell?: string;
}

/** Of a StatefulSet whose controller is the Workspace. */
export interface StatefulSetFacts {
  readonly uid: string;
  readonly generation: number;
  readonly replicas: number;
  readonly builtHash: string;
  /** The image that its pod could not start with, because it has no shell. */
  readonly imageWithoutShell?: string;
  /** The revision that pods should have; undefined until the StatefulSet's controller has observed the latest template. */
  readonly updateRevision?: string;
  readonly isDeleting: boolean;
  /** The generation of the Workspace for which it is scaled to zero, because the preparation failed. */
  readonly backedOffGeneration?: number;
  /** Why its pod was deleted before it started, while it waits for another slot. */
  readonly notStarted?: string;
}

export interface UpdateFacts {
  readonly name: string;
  /** "queued": it has no slot, so it needs no pod. "onPod": it starts or runs in the current pod. */
  readonly phase: "queued" | "waiting" | "onPod" | "ended";
  /** It is on the pod, but the agent cannot start it, because nothing is prepared there, or no longer. */
  readonly isUnprepared?: true;
  readonly endedAt?: number;
}

/** Which Workspaces are scaled to zero early, because no node can take the pods of others. */
export interface Victims {
  readonly victims: ReadonlySet<Key>;
  /** From the Workspace whose pod is unschedulable. */
  readonly victimOf: ReadonlyMap<Key, Key>;
}

/** The plan of the victims, which is used for a while. */
export interface Preemptions extends Victims {
  /** The Workspaces whose pods were unschedulable when the plan was made. */
  readonly planned: ReadonlySet<Key>;
  /** When the next plan can be made. */
  readonly renewedAt: number;
}

/** A Workspace that has a pod. */
export interface Candidate {
  readonly workspace: Workspace;
  readonly pod: ApiObject<Pod>;
  readonly updates: readonly UpdateFacts[];
  /** 0: never. */
  readonly idleTimeoutMs: number;
  /** Its backend's state would be lost with its pod. */
  readonly losesState: boolean;
}

/** What is read for a workspace that has a pod, or needs one, and what is built from it. */
export interface Inputs {
  readonly pod:
    | {
        readonly ok: true;
        readonly template: PodTemplateSpec;
        readonly objects: BuiltObjects;
        /** If `bootstrap` is a helper container: the same with an init container, in case the API server rejects it. */
        readonly withInitContainer?: { readonly template: PodTemplateSpec; readonly objects: BuiltObjects };
      }
    | { readonly ok: false; readonly problems: readonly string[]; readonly reason?: ClassReason };
  /** Sentences about Secrets and ConfigMaps that the pod would wait for. */
  readonly missing: readonly string[];
  /** All Secrets and ConfigMaps that were read, to notice when they change. */
  readonly read: readonly PolledObject[];
  /** From which `requested` is built. */
  readonly materials: Materials;
  readonly requested: Requested;
  /** The folder of a file backend that no volume keeps: its state is lost with the pod. */
  readonly ephemeralState?: string;
}

/** The result of a dry run of the missing pod's creation. */
export type Admission =
  | { readonly kind: "admitted" }
  /** With the API server's reason. */
  | { readonly kind: "rejected"; readonly message: string }
  /** Another pod has its name. */
  | { readonly kind: "occupied"; readonly occupied: Occupied }
  /** The dry run failed for a reason that has nothing to do with the pod. */
  | { readonly kind: "unknown" };

/** A preparation that failed, and is retried. */
export interface Retry {
  readonly failures: number;
  /** When the next attempt is due; Infinity while one is in progress. */
  readonly at: number;
  /** When the attempt in progress began. */
  readonly since?: number;
}

export interface WrittenStatefulSet {
  readonly uid: string;
  readonly generation: number;
}

/** The public part of the agent's certificate. */
export type KnownCertificate = Pick<Certificate, "ca" | "cert">;

/** What the steps of this pass have found out. Undefined where no rule has needed it. */
interface StepFacts {
  readonly inputs?: Inputs;
  /** Of the agent, from the view or a step of this pass. */
  readonly knownCertificate?: KnownCertificate;
  /** "rejected": a new one could not be written. */
  readonly certificate?: CertificateState | "rejected";
  readonly preparation?: Preparation;
  /** The preparation was repeated in this pass. */
  readonly isRetried?: true;
  readonly admission?: Admission;
  /** Why the API server rejected an object. */
  readonly rejection?: string;
  /** Objects that have the names that the Workspace needs, and do not belong to it; undefined while unchecked. */
  readonly occupied?: readonly Occupied[];
  /** The claim with the caches of the class exists. */
  readonly hasCacheClaim?: true;
}

export interface WorkspaceView extends StepFacts {
  readonly now: number;
  readonly workspace: Workspace;
  readonly spec: Normalized<NormalWorkspace>;
  readonly statefulSet?: StatefulSetFacts;
  readonly pod?: PodFacts;
  /** The agent of the pod has done what this process requested last. Unknown after a restart. */
  readonly isKnownPrepared?: true;
  /** The WorkspaceClass of the namespace. */
  readonly workspaceClass: ClassView;
  readonly updates: readonly UpdateFacts[];
  /** 0: never. */
  readonly idleTimeoutMs: number;
  /** How long a pod may be overdue before its node counts as lost. */
  readonly lostNodeAfterMs: number;
  readonly preemptions: Preemptions;
  /** Whether an update may run in it, or it may be prepared for one. */
  readonly slot: SlotView;
  readonly retry?: Retry;
  /** The StatefulSet as this process last wrote it; unknown after a restart. */
  readonly written?: WrittenStatefulSet;
  /** Since when an object of another owner has had a name that is needed; unknown after a restart. */
  readonly conflictSince?: number;
}

export const readyCondition = (workspace: Workspace): Condition | undefined => findCondition(workspace, "Ready");

/** Whether the status is about the current spec. */
export const isObserved = ({ metadata, status }: Workspace): boolean =>
  status?.observedGeneration === (metadata.generation ?? 0);

/** Whether the status reports it as ready for its current spec. */
export function isPrepared(workspace: Workspace): boolean {
  return readyCondition(workspace)?.status === "True" && isObserved(workspace);
}

const failures: ReadonlySet<string> = new Set<WorkspaceReason>([
  "InstallationFailed",
  "InitializationFailed",
  "IncompatibleConfiguration",
]);

/** Whether the status reports that its current spec could not be prepared. */
export function isFailed(workspace: Workspace): boolean {
  const ready = readyCondition(workspace);
  return ready?.status === "False" && failures.has(ready.reason) && isObserved(workspace);
}

export const hasWork = (updates: readonly UpdateFacts[]): boolean =>
  updates.some(({ phase }) => phase === "waiting" || phase === "onPod");

export const runningUpdate = ({ updates }: Pick<WorkspaceView, "updates">): UpdateFacts | undefined =>
  updates.find(({ phase }) => phase === "onPod");

/** A forgotten annotation must not keep a pod forever: earlier than this before its time, it has no effect. */
const longestWakeMs = 8 * 3_600_000;

/** The time until which a person needs the pod; undefined if no one does. */
export function wokenUntil({ workspace, now }: Pick<WorkspaceView, "workspace" | "now">): number | undefined {
  const until = parseTimestamp(workspace.metadata.annotations?.[wakeUntilAnnotation]);
  return until !== undefined && until > now && until - now <= longestWakeMs ? until : undefined;
}

/** When it became ready or its last Update ended, whichever is later. A time after `latest` does not count. */
export function idleSince(workspace: Workspace, updates: readonly UpdateFacts[], latest: number): number {
  const readySince = parseTimestamp(readyCondition(workspace)?.lastTransitionTime) ?? 0;
  const times = [readySince, ...updates.map(({ endedAt = 0 }) => endedAt)];
  return Math.max(0, ...times.filter((time) => time <= latest));
}

/** How long the Ready condition has had its status. */
export function msSinceTransition({ now, workspace }: Pick<WorkspaceView, "now" | "workspace">): number {
  return now - (parseTimestamp(readyCondition(workspace)?.lastTransitionTime) ?? now);
}

/** How long it has waited for the same: the status does not show when a failed preparation is attempted again. */
export function msWaiting(view: Pick<WorkspaceView, "now" | "workspace" | "retry">): number {
  return Math.min(msSinceTransition(view), view.now - (view.retry?.since ?? -Infinity));
}

/** Ready and scaled to zero: nothing needs a pod. */
export function isIdle(view: Pick<WorkspaceView, "workspace" | "updates" | "statefulSet" | "now">): boolean {
  const { workspace, updates, statefulSet } = view;
  const isNeeded = hasWork(updates) || wokenUntil(view) !== undefined;
  return isPrepared(workspace) && !isNeeded && (statefulSet?.replicas ?? 0) === 0;
}

/**
 * Its preparation failed, nothing needs a pod, and it is scaled to zero until the next attempt. An attempt that is in progress needs
 * a pod: with a stale store, it may have begun in one that was about to be terminated.
 */
export function isBackedOff(
  view: Pick<WorkspaceView, "workspace" | "updates" | "statefulSet" | "retry" | "now">,
): boolean {
  const { workspace, updates, statefulSet, retry, now } = view;
  const generation = workspace.metadata.generation ?? 0;
  const isOurs = statefulSet?.replicas === 0 && statefulSet.backedOffGeneration === generation;
  const isNeeded = hasWork(updates) || wokenUntil(view) !== undefined;
  const isWaiting = retry === undefined || (retry.at > now && Number.isFinite(retry.at));
  return isOurs && isFailed(workspace) && !isNeeded && isWaiting;
}

export function agentAddress({ ip }: AgentPod): string {
  return ip.includes(":") ? `[${ip}]:${agentPort}` : `${ip}:${agentPort}`;
}

/** Prepared, in the current pod. */
export function isServing({ workspace, pod }: Pick<WorkspaceView, "workspace" | "pod">): boolean {
  return (
    isPrepared(workspace) && pod !== undefined && pod.isUp && workspace.status?.address === agentAddress(pod.agent)
  );
}
