/** Everything that the rules of an Update decide on. */
import type { Approval, ApprovalRequirement, Normalized, NormalUpdate, Update, UpdatePlan } from "@pko/api";
import type { LostRun, ProjectInfo } from "@pko/rpc";

import type { AgentPod, Run } from "../agents/agents.ts";
import type { PolicyState } from "../approvals/policy-probe.ts";
import type { ApprovalPolicy } from "../shared/approvals.ts";
import type { SlotView } from "../shared/channels/slots.ts";
import { parseTimestamp } from "../shared/parse-timestamp.ts";
import type { OverduePod } from "../shared/pods/lost-node.ts";
import { updateFinalizer } from "./finalizer.ts";

export type WorkspaceFacts =
  | { readonly state: "missing" }
  | { readonly state: "deleting" }
  /** It does not have the Update's stack. `isPrepared`: for its current spec, so the stack will not appear either. */
  | { readonly state: "otherStack"; readonly stacks: readonly string[]; readonly isPrepared: boolean }
  | { readonly state: "notReady"; readonly message: string }
  /** Prepared, but without a pod: the Workspace controller wakes it for this Update. */
  | { readonly state: "idle" }
  | { readonly state: "ready"; readonly address: Address };

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** A pod in which a run may live. A pod that has terminated is not one. */
export interface PodFacts {
  readonly agent: AgentPod;
  readonly isDeleting: boolean;
  /** The hash of the Secrets and ConfigMaps that it reads; absent if it has none. */
  readonly referencesHash?: string;
  /** Present if the kubelet has missed a deadline for the pod. */
  readonly overdue?: OverduePod;
}

/** Another Update of the Workspace that has not finished. */
export interface SiblingFacts {
  readonly name: string;
  /** As in its metadata. */
  readonly createdAt: string;
  /** Its pod is recorded, so it may run. */
  readonly hasStarted: boolean;
  readonly isDeleting: boolean;
  /** The Workspace has its stack, or is not known. */
  readonly canRun: boolean;
}

/** Who must agree before an Update changes resources. */
export interface ApprovalFacts {
  /** What the WorkspaceClass of the namespace requires; unknown while it is not known which class applies. */
  readonly least: ApprovalRequirement | "unknown";
  /** The Stack that controls the Workspace; absent if none does. */
  readonly stack?:
    | { readonly state: "missing"; readonly name: string }
    /** `policy`: absent if it requires no approvals. */
    | {
        readonly state: "present";
        readonly name: string;
        readonly policy?: ApprovalPolicy;
        readonly isProtected: boolean;
      };
  /** The Update that is named as the one with the plan; absent if none is, or it does not exist. */
  readonly plan?: PlanFacts;
  /** The Approvals that name that Update. */
  readonly approvals: readonly Approval[];
}

export interface PlanFacts {
  readonly name: string;
  readonly uid: string;
  readonly workspaceName: string;
  readonly stackName: string;
  /** The operation that it is a plan for. */
  readonly operation: "up" | "destroy";
  /** Absent if it has failed or has not ended. */
  readonly plan?: UpdatePlan;
  readonly endedAt: number;
}

export type PlanContent =
  | { readonly kind: "read"; readonly content: string }
  /** `why`: a sentence. */
  | { readonly kind: "lost"; readonly why: string };

/** The Secrets of a run's result. */
export interface StoredResult {
  readonly outputs?: string;
  readonly stdout?: string;
  readonly plan?: UpdatePlan;
  /** Everything of the result that is incomplete or missing, in sentences. */
  readonly problems: readonly string[];
  /** The problems that are Secrets which could not be created. */
  readonly failures: readonly string[];
}

/** The outputs of the last Update of the same Pulumi stack that has any. */
export interface FormerOutputs {
  readonly updateName: string;
  readonly updateUid: string;
  readonly secretName: string;
}

export interface UpdateView {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly update: Update;
  readonly spec: Normalized<NormalUpdate>;
  /** Known even if the rest of the spec is invalid. */
  readonly ttlMs?: number;
  readonly workspace: WorkspaceFacts;
  /** The Workspace has read the Secrets and ConfigMaps of its pod since this Update was created. */
  readonly isCleared: boolean;
  /** Of the Workspace: whether an operation may run in it. */
  readonly slot: SlotView;
  readonly pod?: PodFacts;
  /** How long a pod may be overdue before its node counts as lost. */
  readonly lostNodeAfterMs: number;
  /** The run in the pod that the status records. */
  readonly run?: Run;
  readonly siblings: readonly SiblingFacts[];
  /** Whose Secret is used if the outputs have not changed. */
  readonly formerOutputs?: FormerOutputs;
  readonly project?: ProjectInfo;
  /** How many resources the stack had after its last operation. */
  readonly expectedResources?: number;
  readonly logLevel?: number;
  /** Of the run's span; absent if traces are off. */
  readonly traceparent?: string;
  /** Runs of the workspace that ended with their pods, and may have left the stack locked. */
  readonly lostRuns: readonly LostRun[];
  readonly approval: ApprovalFacts;
  /** Whether the admission policy makes Approvals trustworthy. */
  readonly approvalPolicy: PolicyState;
  /** A fact: the content of the plan that the Update applies. */
  readonly planContent?: PlanContent;
  /** A fact: why the plan that the run has made could not be stored. */
  readonly planFailure?: string;
  /** A fact: what the step `storeResult` has stored. */
  readonly stored?: StoredResult;
  /** A fact: why the record of the run is missing or incomplete. */
  readonly recordFailure?: string;
  /** A fact: why the API server rejected the status with the result. */
  readonly statusRejection?: string;
}

export function isDeleting({ update }: UpdateView): boolean {
  return update.metadata.deletionTimestamp !== undefined;
}

/** The pod is recorded, so its agent may have been requested to start the operation. */
export function hasStarted({ update }: UpdateView): boolean {
  return update.status?.podUid !== undefined;
}

/** The agent has reported progress, so it has started the operation. */
export function hasReported({ update }: UpdateView): boolean {
  return update.status?.progress !== undefined || update.status?.process !== undefined;
}

export function hasFinalizer({ update }: UpdateView): boolean {
  return update.metadata.finalizers?.includes(updateFinalizer) ?? false;
}

/** For pauses: how long it has existed. */
export function sinceCreation({ update, now }: UpdateView): { readonly sinceMs: number; readonly id: string } {
  const { creationTimestamp, uid = "" } = update.metadata;
  return { sinceMs: now - (parseTimestamp(creationTimestamp) ?? now), id: uid };
}

/** The run of an Update has the Update's uid, so it can be started only once. */
export function runIdOf({ update }: UpdateView): string {
  return update.metadata.uid ?? "";
}
