/**
 * The operator's side of the agents: the state of the long work that they do. Nothing here blocks: a controller reads the
 * state at each pass, and its key is requeued whenever that state changes.
 *
 * `operatorCa()` is in operator-ca.ts, `preparations()` in preparations.ts, `runs()` in runs.ts.
 */
import type { Progress } from "@pko/records";
import type {
  Credentials,
  Output,
  PreparePhase,
  PrepareRequest,
  PrepareResult,
  ProjectInfo,
  RecordResult,
  RunResult,
  SealedPlan,
  StartRequest,
  WorkspaceRef,
} from "@pko/rpc";
import type { Certificate, CertificateState } from "@pko/rpc/pki";

/** The port on which an agent listens, unless the workspace's address has another. */
export { agentPort } from "@pko/api";

/** The current pod of a workspace. A pod that replaces it has another uid. */
export interface AgentPod {
  readonly workspace: WorkspaceRef;
  readonly uid: string;
  /** Restarts of the agent's container: a restarted agent is prepared again, although its folder is kept. */
  readonly restarts: number;
  readonly ip: string;
  /** `agentPort` unless given. */
  readonly port?: number;
  /** Its container is about to start, or has just started: the kubelet reports that a second later. */
  readonly isStarting?: boolean;
}

/** The CA, which issues the operator's certificate and those of the workspaces. */
export interface OperatorCa {
  /** Reads the CA, or creates one. Must be awaited before anything else is called; later calls read it again. */
  load(): Promise<void>;
  /**
   * Reads the CA periodically. `onChange` is called when certificates of workspaces may have become outdated. Returns a
   * function that stops it.
   */
  follow(onChange: () => void): () => void;
  /** An agent's certificate was not trusted: the CA may have changed, so it is read soon. */
  distrusted(): void;
  /** The current certificate of the operator, for its connections to agents. */
  operatorCredentials(): Credentials;
  /** Whether the certificate in a workspace's Secret is still valid, and if not, why. */
  assess(certificate: Pick<Certificate, "ca" | "cert"> | undefined): Promise<CertificateState>;
  /** A new certificate for the workspace's Secret (keys `ca.crt`, `tls.crt`, `tls.key`). */
  workspaceCertificate(workspace: WorkspaceRef): Promise<Certificate>;
}

export type Preparation =
  | { readonly state: "running"; readonly phase?: PreparePhase }
  | { readonly state: "done"; readonly result: PrepareResult }
  /** A run is active, so the workspace must not change until it ends. Retried automatically. */
  | { readonly state: "busy"; readonly message: string; readonly activeRun?: string }
  /** Retried automatically with backoff. */
  | { readonly state: "unreachable"; readonly message: string; readonly sinceMs: number };

export interface Preparations {
  /** Starts the preparation, unless this pod already has the same request. Returns its state. */
  ensure(pod: AgentPod, request: PrepareRequest): Preparation;
  /** Whether this pod's agent has responded to the last request. */
  hasResponded(pod: AgentPod): boolean;
  /** What this pod has prepared for the last request, as its agent names it: empty in version 1. Undefined while that is not known. */
  preparationOf(pod: AgentPod): string | undefined;
  /** Repeats a request that is done, after a failure that may be temporary. */
  retry(pod: AgentPod): void;
  /**
   * Repeats a request that succeeded, because the agent no longer has its result: a destroy may have removed the stack.
   * Repeated calls for the same run take effect with backoff.
   */
  renew(pod: AgentPod, runId: string): void;
  /** Forgets a workspace that is deleted or idle. */
  forget(workspace: WorkspaceRef): void;
}

/** What runs need of the preparations. */
export type RunPreparations = Pick<Preparations, "preparationOf" | "renew">;

/** The projects as their preparation reported them: runs do not repeat that. */
export interface Projects {
  projectOf(workspace: WorkspaceRef): ProjectInfo | undefined;
}

export type Run =
  | { readonly state: "starting" }
  | { readonly state: "running"; readonly progress: Progress }
  | {
      readonly state: "finished";
      readonly result: RunResult;
      readonly outputs: readonly Output[];
      /** Why the outputs could not be read. */
      readonly outputsProblem?: string;
      /** Present if the run has kept one. */
      readonly plan?: SealedPlan;
      /** Why the plan could not be read. */
      readonly planProblem?: string;
      /** Absent if the agent is older than records, or did not return it. */
      readonly record?: RecordResult;
      /** Why the record could not be read. */
      readonly recordProblem?: string;
    }
  /** The agent has no such run, or does not start it. After "unprepared" and "busy", the request is repeated. */
  | { readonly state: "refused"; readonly code: "unprepared" | "busy" | "notFound" | "other"; readonly message: string }
  | { readonly state: "unreachable"; readonly message: string; readonly sinceMs: number };

/** The pod of a run. Its address is unknown while the pod has none. */
export type FollowedPod = Pick<AgentPod, "uid"> & Partial<Pick<AgentPod, "ip">>;

export interface Runs {
  /**
   * The state of a run in that pod; undefined if it is not followed. Only reads. A pod has another address after a restart of its
   * node: a run that has not finished must be followed there, by another `ensure`.
   */
  find(pod: FollowedPod, runId: string): Run | undefined;
  /**
   * Starts the run, or attaches to it: `start` is idempotent by its runId. Never starts one again that the agent of this pod has
   * started, even if the agent has lost its record of it.
   */
  ensure(pod: AgentPod, request: StartRequest): Run;
  /** Attaches to a run that was started before; never starts one. */
  attach(pod: AgentPod, runId: string): Run;
  /** Requests that the agent cancel a run; its result shows when it has ended. */
  cancel(pod: AgentPod, runId: string): void;
  forget(runId: string): void;
}

/** For shutdown and the loss of leadership: closes every stream. The agents continue, and a later `ensure` attaches to them. */
export interface Stoppable {
  stop(): Promise<void>;
}
