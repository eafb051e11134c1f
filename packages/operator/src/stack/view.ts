/** Everything that the rules of a Stack may depend on: gathered by observe/, and completed by facts that steps learn. */
import type {
  Approval,
  JsonValue,
  LastUpdate,
  Normalized,
  NormalStack,
  ProjectInfo,
  Stack,
  StackReason,
  StackStatus,
  Update,
  UpdateDrift,
  UpdatePlan,
  UpdateStatus,
  Workspace,
} from "@pko/api";
import { stackFinalizer } from "@pko/api";
import type { KubeObject, Occupant, Occupied } from "@pko/kube";

import type { PolicyState } from "../approvals/policy-probe.ts";
import type { PolledObject } from "../inputs/reference-poller.ts";
import type { SlotView } from "../shared/channels/slots.ts";
import type { Rejection } from "../shared/objects/rejections.ts";
import type { FollowedSource } from "../sources/follow.ts";
import type { ClassView } from "../shared/workspace-classes.ts";
import type { SourceView } from "../sources/source-view.ts";
import type { Trigger } from "./history/trigger.ts";

export interface StackView extends LearnedFacts {
  readonly now: number;
  readonly stack: Stack;
  readonly spec: Normalized<NormalStack>;
  /** The Updates that this Stack owns, by UID, the oldest first. */
  readonly updates: readonly UpdateFacts[];
  /** Updates with the Stack's finalizer whose owner was an earlier Stack of the same name. */
  readonly orphans: readonly Update[];
  readonly workspace: WorkspaceFacts;
  readonly source: SourceView;
  /** What the Stack follows when the pass ends, for no rule to use; absent if it follows nothing. */
  readonly followed?: FollowedSource;
  /** Stacks that depend on this one and still exist; observed only while this one is being deleted. */
  readonly dependents: readonly DependentView[];
  /** The names of Updates whose end the forge does not show yet; observed only for an abandoned preview of a pull request. */
  readonly unreported: readonly string[];
  /** The names of Stacks that depend on each other, from this one back to itself; empty if there is no cycle. */
  readonly cycle: readonly string[];
  readonly prerequisites: readonly PrerequisiteView[];
  /** Outputs of other Stacks that this one uses. */
  readonly stackOutputs: readonly StackOutputView[];
  /** Values that the configuration takes from Secrets and ConfigMaps. */
  readonly configInputs: readonly ConfigInput[];
  /** The Secrets and ConfigMaps that hold them, as read. */
  readonly configObjects: readonly PolledObject[];
  /** All Secrets and ConfigMaps that were read, so that no step reads them again. */
  readonly readObjects: ReadObjects;
  /** The outputs of the Update whose result is unrecorded, or whose outputs are pending. */
  readonly outputs: OutputsView;
  /** Approvals that name the Update of the plan in the status. */
  readonly approvals: readonly Approval[];
  /** Whether the admission policy makes Approvals trustworthy. */
  readonly approvalPolicy: PolicyState;
  /** The WorkspaceClass of the namespace. */
  readonly workspaceClass: ClassView;
  /** Why the Stack has been stalled, and since when; unknown after a restart. */
  readonly obstacle?: Obstacle;
  /** Whether all Stacks of the operator are suspended. */
  readonly operatorSuspended: boolean;
  /** Of the Workspace: whether an update may run in it. */
  readonly slot: SlotView;
}

export interface Obstacle {
  readonly reason: StackReason<"Stalled">;
  readonly since: number;
}

/** By `secret/NAME` or `configMap/NAME`; undefined for an object that does not exist or may not be read. */
export type ReadObjects = ReadonlyMap<string, KubeObject | undefined>;

export const secretId = (name: string): string => `secret/${name}`;

/** Unknown when a pass starts. */
interface LearnedFacts {
  /** Problems with the Secrets and ConfigMaps that the spec refers to; undefined while unchecked. */
  readonly missingInputs?: readonly string[];
  /** The API server rejected a write. */
  readonly rejection?: Rejection;
  /** A name that the Stack needs is taken. */
  readonly occupied?: Occupied;
  /** The name of the Secret for the Stack's outputs is taken. */
  readonly occupiedOutputs?: Occupied;
  /** The API server rejected the Secret with the outputs. */
  readonly rejectedOutputs?: { readonly secretName: string; readonly explanation: string };
  /** Old Updates were deleted in this pass, as far as the API server allowed it. */
  readonly isHistoryTrimmed?: boolean;
  /** Another owner's Update runs in the Workspace, which therefore must not be deleted. */
  readonly otherUpdate?: string;
}

/** What the Stack knows about one of its Updates. */
export interface UpdateFacts {
  readonly name: string;
  readonly uid: string;
  readonly deleting: boolean;
  readonly type: string;
  /** A preview of a refresh: its result is about drift, and is never recorded as the last update. */
  readonly isDriftCheck: boolean;
  /** Whether it reads the resources into the state before it changes them. */
  readonly refreshes: boolean;
  readonly state: "unfinished" | "succeeded" | "failed";
  /** The Stack's finalizer keeps the Update until its result is recorded in the Stack's status. */
  readonly hasFinalizer: boolean;
  readonly finalizers: readonly string[];
  readonly resourceVersion: string;
  readonly createdAt: number;
  readonly startedAt?: number;
  readonly endedAt?: number;
  /** Why it runs; unknown for an Update that another operator created. */
  readonly trigger?: Trigger;
  readonly failure?: string;
  readonly message?: string;
  /** Whether the next run needs to know its process, whose lock may still be there. */
  readonly mayHaveLeftLock: boolean;
  /** Why it makes no progress until a person acts. */
  readonly stall?: { readonly reason: StackReason<"Stalled">; readonly message: string };
  /** What remains to be done although it succeeded. */
  readonly warning?: string;
  readonly permalink?: string;
  readonly projectInfo?: ProjectInfo;
  /** The Secret that holds the outputs. */
  readonly outputs?: string;
  /** What a drift check has found. */
  readonly drift?: UpdateDrift;
  readonly report: Pick<UpdateStatus, "changes" | "summary" | "stdout">;
  /** It makes a plan that is to be approved, and changes nothing. */
  readonly isPlan: boolean;
  readonly plan?: UpdatePlan;
  /** The name of the Update whose plan it applies. */
  readonly appliesPlan?: string;
}

/** A value of `UpdateFacts.failure`: another update of the Pulumi stack was running. */
export const conflictFailure = "conflict";
/** A value of `UpdateFacts.failure`: the Update was deleted before it started. */
export const withdrawnFailure = "withdrawn";

/** What the Stack knows about the Workspace of its name. */
export type WorkspaceFacts =
  | { readonly kind: "absent" }
  /** Another owner's. */
  | { readonly kind: "foreign"; readonly occupant: Occupant }
  | { readonly kind: "deleting" }
  | {
      readonly kind: "present";
      readonly object: Workspace;
      /** Of the current generation. */
      readonly state:
        | {
            readonly kind: "ready";
            readonly warning?: string;
            /** The commit with which the agent compared this one, if it found no difference. */
            readonly unchangedSince?: string;
          }
        | { readonly kind: "preparing"; readonly message: string }
        | { readonly kind: "failed"; readonly reason: string; readonly message: string };
    };

export interface PrerequisiteView {
  readonly name: string;
  readonly uid?: string;
  readonly withinMs?: number;
  readonly state: "absent" | "deleting" | "present";
  /** The result of its last update. A destroy counts as none. */
  readonly last: "none" | "deployed" | "previewed" | "failed";
  /** Whether that update was for its current spec and request. */
  readonly isCurrent: boolean;
  /** When its last update ended. */
  readonly endedAt?: number;
  readonly reconcileRequest: string;
}

export interface DependentView {
  readonly name: string;
  /** Whether it is being deleted. */
  readonly deleting: boolean;
  /** Whether its resources are destroyed when it is deleted. */
  readonly wantsDestroy: boolean;
  /** Whether this Stack depends on it, too. */
  readonly isInCycle: boolean;
}

export interface ConfigInput {
  /** `secret/NAME.KEY` or `configMap/NAME.KEY`. */
  readonly name: string;
  /** Changes with the value. */
  readonly version: string;
}

export interface StackOutputView {
  readonly stack: string;
  readonly output: string;
  /** The other Stack's Update that last changed the value; undefined if there is no such output. */
  readonly version?: string;
  /** The names of all outputs of the other Stack; undefined if it has no Secret for them. */
  readonly others?: readonly string[];
  /** Whether the Secret with the name of its outputs has another owner. */
  readonly isForeign?: boolean;
  /** The other Stack as a prerequisite. */
  readonly from: PrerequisiteView;
}

export type OutputsView =
  | { readonly kind: "none" }
  /** `message`: sentences. `occupant`: another owner's Secret that has the name of the Update's. */
  | { readonly kind: "lost"; readonly message: string; readonly occupant?: Occupant }
  | {
      readonly kind: "read";
      readonly values: readonly OutputValue[];
      /** The current content of the Stack's outputs Secret: data by output, and the Update that last changed each. */
      readonly former: { readonly data: Readonly<Record<string, string>>; readonly versions: OutputVersions };
    };

export interface OutputValue {
  readonly name: string;
  readonly secret: boolean;
  readonly value: JsonValue;
}

/** The name of an output → the name of the Update that last changed it. */
export type OutputVersions = Readonly<Record<string, string>>;

export const presentStatus = (view: Pick<StackView, "stack">): StackStatus => view.stack.status ?? {};

export const lastUpdateIn = (view: Pick<StackView, "stack">): LastUpdate | undefined => view.stack.status?.lastUpdate;

export const isDeleting = (view: Pick<StackView, "stack">): boolean =>
  view.stack.metadata.deletionTimestamp !== undefined;

export const hasFinalizer = ({ stack }: Pick<StackView, "stack">): boolean =>
  stack.metadata.finalizers?.includes(stackFinalizer) ?? false;

/** Undefined for an invalid spec. */
export const validSpec = (view: Pick<StackView, "spec">): NormalStack | undefined =>
  view.spec.ok ? view.spec.value : undefined;

export const isFinished = ({ state }: UpdateFacts): boolean => state !== "unfinished";

/** Its result is a plan, which becomes the approval request of the status instead of its last update. */
export const hasPlan = ({ isPlan, state }: UpdateFacts): boolean => isPlan && state === "succeeded";

export const unfinishedUpdate = ({ updates }: Pick<StackView, "updates">): UpdateFacts | undefined =>
  updates.find(({ state }) => state === "unfinished");

export type Suspender = "stack" | "operator";

/** Empty if the Stack is not suspended. Valid also for a spec that is otherwise invalid. */
export function suspendedBy({ stack, operatorSuspended }: Pick<StackView, "stack" | "operatorSuspended">): Suspender[] {
  const spec: Partial<Stack["spec"]> | undefined = stack.spec;
  return [
    ...(spec?.suspend === true ? (["stack"] as const) : []),
    ...(operatorSuspended ? (["operator"] as const) : []),
  ];
}

/** Whether the status shows that the Stack is suspended. */
export const wasSuspended = (view: Pick<StackView, "stack">): boolean =>
  presentStatus(view).conditions?.some(({ type, reason }) => type === "Reconciling" && reason === "Suspended") ?? false;

/** Valid also for a spec that is otherwise invalid. */
export function isProtected({ stack }: Pick<StackView, "stack">): boolean {
  const spec: Partial<Stack["spec"]> | undefined = stack.spec;
  return spec?.protect === true;
}

/** Valid also for a spec that is otherwise invalid. */
export function wantsDestroy({ stack }: Pick<StackView, "stack">): boolean {
  const spec: Partial<Stack["spec"]> | undefined = stack.spec;
  // A previewed Pulumi stack may be another Stack's.
  return spec?.destroyOnFinalize === true && spec.preview !== true;
}
