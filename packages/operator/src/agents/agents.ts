/**
 * The operator's side of the agents: the long work that they do, seen as state. Nothing here waits: a controller asks
 * for the state at each pass, and its key is queued again whenever that state changes.
 */
import type { Output, PreparePhase, PrepareRequest, PrepareResult, Progress, RunResult, StartRequest } from "@pko/rpc";

/** The pod of a workspace, as it is now. A replaced pod has another uid. */
export interface AgentPod {
  readonly workspace: { readonly namespace: string; readonly name: string };
  readonly uid: string;
  /** Counts restarts of the agent's container: a restarted agent is prepared anew, though its folder is kept. */
  readonly restarts: number;
  readonly ip: string;
}

export type Preparation =
  | { readonly state: "running"; readonly phase?: PreparePhase }
  | { readonly state: "done"; readonly result: PrepareResult }
  /** Tried again by itself, at growing intervals. */
  | { readonly state: "unreachable"; readonly message: string; readonly sinceMs: number };

export interface Preparations {
  /** Begins the preparation where this pod was not asked for the same before; otherwise only tells how it stands. */
  ensure(pod: AgentPod, request: PrepareRequest): Preparation;
  /** Asks again for what is done: after a failure that may pass. */
  retry(pod: AgentPod): void;
  /** Drops what is known of a workspace that is gone or asleep. */
  forget(workspace: AgentPod["workspace"]): void;
}

export type Run =
  | { readonly state: "starting" }
  | { readonly state: "running"; readonly progress: Progress }
  | { readonly state: "finished"; readonly result: RunResult; readonly outputs: readonly Output[] }
  /** The agent knows no such run, or will not begin it: its own word. */
  | { readonly state: "refused"; readonly code: "unprepared" | "busy" | "notFound" | "other"; readonly message: string }
  | { readonly state: "unreachable"; readonly message: string; readonly sinceMs: number };

export interface Runs {
  /** Starts the run, or takes it up again where it is: `start` is idempotent by its runId. */
  ensure(pod: AgentPod, request: StartRequest): Run;
  /** Takes up a run that was started before; never starts one. */
  attach(pod: AgentPod, runId: string): Run;
  /** Asks the agent to end a run; its result tells when it has. */
  cancel(pod: AgentPod, runId: string): void;
  forget(runId: string): void;
}
