/** All that the plan of a Workspace may know, and what follows from it without further reading. Pure. */
import type { Condition, NormalWorkspace, Normalised, Workspace, WorkspaceReason } from "@pko/api";
import type { Key, Occupied } from "@pko/kube";
import type { CertificateState } from "@pko/rpc/pki";
import type { PodTemplateSpec } from "kubernetes-types/core/v1";

import { agentPort, type AgentPod } from "../agents/agents.ts";
import type { OverduePod } from "../lost-node.ts";
import type { WatchedObject } from "../inputs/reference-watch.ts";
import type { BuiltObjects } from "./build-objects.ts";
import type { Explanation } from "./explain-pod.ts";
import type { Requested } from "./prepare-request.ts";

export interface PodFacts {
  readonly agent: AgentPod;
  /** The agent's container runs and can be dialled: the kubelet says so, or the agent has answered. */
  readonly isUp: boolean;
  readonly isDeleting: boolean;
  /** When its deletion was asked for. */
  readonly endingSince?: number;
  /** Present if its kubelet does not do what a living one does. */
  readonly overdue?: OverduePod;
  readonly isUnschedulable: boolean;
  /** Of the StatefulSet's template that it was made from. */
  readonly revision: string;
  /** Why it is not up. */
  readonly explanation: Explanation;
}

/** Of a StatefulSet whose controller is the Workspace. */
export interface StatefulSetFacts {
  readonly uid: string;
  readonly generation: number;
  readonly replicas: number;
  readonly builtHash: string;
  /** The revision that pods are to have; undefined until its controller has looked at the latest template. */
  readonly updateRevision?: string;
  readonly isDeleting: boolean;
  /** The generation of the Workspace for which there is no pod, because its preparation fails. */
  readonly putAwayFor?: number;
}

export interface UpdateFacts {
  readonly name: string;
  /** "onPod": it has said that it starts, or runs, in the very pod that is there. */
  readonly phase: "waiting" | "onPod" | "ended";
  /** It is on the pod, but the agent does not start it, because nothing is prepared there (any more). */
  readonly isUnprepared?: true;
  readonly endedAt?: number;
}

/** What had to be read for a workspace that is awake, or is to be. */
export interface Inputs {
  readonly pod:
    | { readonly ok: true; readonly template: PodTemplateSpec; readonly objects: BuiltObjects }
    | { readonly ok: false; readonly problems: readonly string[] };
  /** Sentences: Secrets and ConfigMaps that the pod would wait for. */
  readonly missing: readonly string[];
  /** All Secrets and ConfigMaps that were read, to notice when they change. */
  readonly read: readonly WatchedObject[];
  readonly requested: Requested;
  /** The folder of a file backend that no volume keeps. */
  readonly losable?: string;
  /** What a dry run of the missing pod's creation shows. Absent where the pod exists, or may be about to. */
  readonly admission?: Admission;
}

export type Admission =
  | { readonly kind: "admitted" }
  /** With the API server's reason. */
  | { readonly kind: "rejected"; readonly message: string }
  /** Another pod has its name. */
  | { readonly kind: "occupied"; readonly occupied: Occupied };

export interface WorkspaceView {
  readonly now: number;
  readonly workspace: Workspace;
  readonly spec: Normalised<NormalWorkspace>;
  readonly statefulSet?: StatefulSetFacts;
  readonly pod?: PodFacts;
  readonly updates: readonly UpdateFacts[];
  /** 0: never. */
  readonly idleTimeoutMs: number;
  /** How long a pod may be overdue before its node counts as lost. */
  readonly lostNodeAfterMs: number;
  /** The workspaces that could best make room, when pods find no node. */
  readonly yielding: readonly Key[];
  /** Absent where nothing is decided by it: asleep, or an Update runs. */
  readonly inputs?: Inputs;
  /** Of the certificate in its Secret. Absent where there is no pod, nor is one about to be made. */
  readonly certificate?: CertificateState;
  /** When a preparation that has failed is to be tried again; Infinity while it is being tried. */
  readonly retryAt?: number;
  /** The generation of the StatefulSet as we wrote or found it; unknown after a start. */
  readonly writtenGeneration?: number;
  /** Since when somebody else's object has had a name that is needed; unknown after a start. */
  readonly conflictSince?: number;
}

export const readyOf = ({ status }: Workspace): Condition | undefined =>
  status?.conditions?.find(({ type }) => type === "Ready");

/** Ready for its present spec, by its own status. */
export function isPrepared(workspace: Workspace): boolean {
  return (
    readyOf(workspace)?.status === "True" &&
    workspace.status?.observedGeneration === (workspace.metadata.generation ?? 0)
  );
}

const failures: ReadonlySet<string> = new Set<WorkspaceReason>([
  "InstallationFailed",
  "InitializationFailed",
  "IncompatibleConfiguration",
]);

/** Its present spec could not be prepared, by its own status. */
export function isFailed(workspace: Workspace): boolean {
  const ready = readyOf(workspace);
  return (
    ready?.status === "False" &&
    failures.has(ready.reason) &&
    workspace.status?.observedGeneration === (workspace.metadata.generation ?? 0)
  );
}

export const hasWork = (updates: readonly UpdateFacts[]): boolean => updates.some(({ phase }) => phase !== "ended");

export const runOf = ({ updates }: Pick<WorkspaceView, "updates">): UpdateFacts | undefined =>
  updates.find(({ phase }) => phase === "onPod");

/** The last time that it was good for something. */
export function idleSince(workspace: Workspace, updates: readonly UpdateFacts[]): number {
  const readySince = Date.parse(readyOf(workspace)?.lastTransitionTime ?? "");
  return Math.max(Number.isNaN(readySince) ? 0 : readySince, ...updates.map(({ endedAt = 0 }) => endedAt));
}

/** How long the Ready condition has had its status. */
export function sinceTransitionMs({ now, workspace }: Pick<WorkspaceView, "now" | "workspace">): number {
  const time = Date.parse(readyOf(workspace)?.lastTransitionTime ?? "");
  return Number.isNaN(time) ? 0 : now - time;
}

/** Nothing asks for a pod, and there is none. */
export function isAsleep({
  workspace,
  updates,
  statefulSet,
}: Pick<WorkspaceView, "workspace" | "updates" | "statefulSet">) {
  return isPrepared(workspace) && !hasWork(updates) && (statefulSet?.replicas ?? 0) === 0;
}

/** Its preparation fails, nothing asks for a pod, and there is none until the next try. */
export function isPutAway(
  view: Pick<WorkspaceView, "workspace" | "updates" | "statefulSet" | "retryAt" | "now">,
): boolean {
  const { workspace, updates, statefulSet, retryAt = Infinity, now } = view;
  const isOurs = statefulSet?.replicas === 0 && statefulSet.putAwayFor === (workspace.metadata.generation ?? 0);
  return isOurs && isFailed(workspace) && !hasWork(updates) && retryAt > now;
}

export function addressOf({ ip }: AgentPod): string {
  return ip.includes(":") ? `[${ip}]:${agentPort}` : `${ip}:${agentPort}`;
}

/** Prepared, in the pod that is there. */
export function isServing({ workspace, pod }: Pick<WorkspaceView, "workspace" | "pod">): boolean {
  return isPrepared(workspace) && pod !== undefined && pod.isUp && workspace.status?.address === addressOf(pod.agent);
}
