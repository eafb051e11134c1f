/** What an Update's plan is made from. */
import type { Normalised, NormalUpdate, Update } from "@pko/api";
import type { LostRun, ProjectInfo } from "@pko/rpc";

import type { AgentPod, Run } from "../agents/agents.ts";
import type { OverduePod } from "../lost-node.ts";

export type WorkspaceFacts =
  | { readonly state: "missing" }
  | { readonly state: "deleting" }
  /** It has no such Pulumi stack. `isPrepared`: nor is it about to get one. */
  | { readonly state: "otherStack"; readonly stacks: readonly string[]; readonly isPrepared: boolean }
  | { readonly state: "notReady"; readonly message: string }
  /** Prepared, but without a pod: its controller wakes it for us. */
  | { readonly state: "asleep" }
  | { readonly state: "ready"; readonly address: Address };

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** A pod in which a run may live. One that has ended is no pod any more. */
export interface PodFacts {
  readonly agent: AgentPod;
  readonly isDeleting: boolean;
  /** Present if its kubelet does not do what a living one does. */
  readonly overdue?: OverduePod;
}

export interface UpdateView {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly update: Update;
  readonly spec: Normalised<NormalUpdate>;
  /** Known even where the rest of the spec makes no sense. */
  readonly ttlMs?: number;
  readonly workspace: WorkspaceFacts;
  /** The Workspace has read, since this Update came, what its pod reads. */
  readonly isCleared: boolean;
  readonly pod?: PodFacts;
  /** How long a pod may be overdue before its node counts as lost. */
  readonly lostNodeAfterMs: number;
  /** The run in the pod that status records. */
  readonly run?: Run;
  /** Another Update of the workspace that runs, or is first in line. */
  readonly before?: string;
  readonly project?: ProjectInfo;
  /** How many resources the stack had after its last operation. */
  readonly expectedResources?: number;
  readonly logLevel?: number;
  /** Runs of the workspace that ended with their pods, and may have left the stack locked. */
  readonly lostRuns: readonly LostRun[];
}
