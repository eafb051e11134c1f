/** What a reconcile of a Stack knows: everything that its plan looks at, gathered by observe.ts. */
import type {
  JsonValue,
  LastUpdate,
  Normalised,
  NormalStack,
  ProjectInfo,
  Stack,
  StackStatus,
  UpdateStatus,
  Workspace,
} from "@pko/api";
import type { Occupant } from "@pko/kube";

import type { SourceView } from "../sources/source-view.ts";
import type { Trigger } from "./trigger.ts";

export interface StackView {
  readonly now: number;
  readonly stack: Stack;
  readonly spec: Normalised<NormalStack>;
  /** All that this very Stack owns, the oldest first. */
  readonly updates: readonly UpdateView[];
  readonly workspace: WorkspaceView;
  readonly source: SourceView;
  /** The names of Stacks that wait for each other, from this one to itself. */
  readonly cycle: readonly string[];
  readonly prerequisites: readonly PrerequisiteView[];
  /** Outputs of other Stacks that this one is given. */
  readonly stackOutputs: readonly StackOutputView[];
  /** What its configuration takes from Secrets and ConfigMaps. */
  readonly configInputs: readonly ConfigInput[];
  /** Secrets and ConfigMaps that are missed; only looked for when an update is due. */
  readonly missing: readonly string[];
  /** Those of the Update whose end is to be noted, or whose outputs are pending. */
  readonly outputs: OutputsView;
  /** Since when somebody else's object has had a name that is needed; unknown after a start. */
  readonly conflictSince?: number;
}

export interface UpdateView {
  readonly name: string;
  readonly uid: string;
  readonly deleting: boolean;
  readonly type: string;
  readonly state: "running" | "succeeded" | "failed";
  /** Kept until its end is noted in the Stack's status. */
  readonly held: boolean;
  readonly finalizers: readonly string[];
  readonly resourceVersion: string;
  readonly createdAt: number;
  readonly startedAt?: number;
  readonly endedAt?: number;
  /** Why it runs; unknown of one that another operator made. */
  readonly trigger?: Trigger;
  readonly failure?: string;
  readonly message?: string;
  /** Why it does not get any further until somebody acts. */
  readonly stall?: string;
  readonly permalink?: string;
  readonly projectInfo?: ProjectInfo;
  /** The Secret that holds the outputs. */
  readonly outputs?: string;
  readonly report: Pick<UpdateStatus, "changes" | "summary" | "stdout">;
}

export type WorkspaceView =
  | { readonly kind: "absent" }
  /** Of this name, and not this Stack's. */
  | { readonly kind: "foreign"; readonly occupant: Occupant }
  | { readonly kind: "deleting" }
  | {
      readonly kind: "present";
      readonly object: Workspace;
      /** Speaks of the present generation. */
      readonly state:
        | { readonly kind: "ready"; readonly warning?: string }
        | { readonly kind: "preparing"; readonly message: string }
        | { readonly kind: "failed"; readonly reason: string; readonly message: string };
    };

export interface PrerequisiteView {
  readonly name: string;
  readonly uid?: string;
  readonly withinMs?: number;
  readonly state: "absent" | "deleting" | "present";
  /** How its last update ended. A destroy counts for nothing. */
  readonly last: "none" | "deployed" | "previewed" | "failed";
  /** Whether that was for its present spec and request. */
  readonly isCurrent: boolean;
  /** When its last update ended. */
  readonly endedAt?: number;
  readonly reconcileRequest: string;
}

export interface ConfigInput {
  /** `secret/NAME.KEY` or `configMap/NAME.KEY`. */
  readonly name: string;
  /** Another one for another value. */
  readonly version: string;
}

export interface StackOutputView {
  readonly stack: string;
  readonly output: string;
  /** Which of the other Stack's Updates gave it its value; undefined when there is no such output. */
  readonly version?: string;
  /** The names of those that it has; undefined where there is no Secret for them. */
  readonly others?: readonly string[];
  /** Whether the Secret for its outputs is somebody else's. */
  readonly isForeign?: boolean;
  /** As of a prerequisite. */
  readonly from: PrerequisiteView;
}

export type OutputsView =
  | { readonly kind: "none" }
  /** `message`: sentences. `occupant`: somebody else's Secret that has the name of the Update's. */
  | { readonly kind: "lost"; readonly message: string; readonly occupant?: Occupant }
  | {
      readonly kind: "read";
      readonly values: readonly OutputValue[];
      /** The Stack's own Secret as it is now, if there is one: data by output, and which Update gave each its value. */
      readonly former: { readonly data: Readonly<Record<string, string>>; readonly versions: OutputVersions };
    };

export interface OutputValue {
  readonly name: string;
  readonly secret: boolean;
  readonly value: JsonValue;
}

/** The name of an output → the name of the Update that last changed it. */
export type OutputVersions = Readonly<Record<string, string>>;

export const statusOfStack = (view: Pick<StackView, "stack">): StackStatus => view.stack.status ?? {};

export const lastUpdateOf = (view: Pick<StackView, "stack">): LastUpdate | undefined => view.stack.status?.lastUpdate;

export const isDeleting = (view: Pick<StackView, "stack">): boolean =>
  view.stack.metadata.deletionTimestamp !== undefined;

/** Undefined for a spec that cannot be carried out. */
export const specOf = (view: Pick<StackView, "spec">): NormalStack | undefined =>
  view.spec.ok ? view.spec.value : undefined;
