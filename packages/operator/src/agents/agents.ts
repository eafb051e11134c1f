/**
 * The operator's side of the agents: the long work that they do, seen as state. Nothing here waits: a controller asks
 * for the state at each pass, and its key is queued again whenever that state changes.
 *
 * authority.ts makes `authority()`, preparations.ts `preparations()`, runs.ts `runs()`.
 */
import type {
  Credentials,
  Output,
  PreparePhase,
  PrepareRequest,
  PrepareResult,
  Progress,
  ProjectInfo,
  RunResult,
  StartRequest,
  WorkspaceRef,
} from "@pko/rpc";
import type { Certificate, CertificateState } from "@pko/rpc/pki";

/** Where an agent listens, unless the workspace's address says otherwise. */
export { agentPort } from "@pko/api";

/** The pod of a workspace, as it is now. A replaced pod has another uid. */
export interface AgentPod {
  readonly workspace: WorkspaceRef;
  readonly uid: string;
  /** Counts restarts of the agent's container: a restarted agent is prepared anew, though its folder is kept. */
  readonly restarts: number;
  readonly ip: string;
  /** `agentPort` unless given. */
  readonly port?: number;
  /** Its container is about to begin, or has: the kubelet tells of that a second later. */
  readonly isComing?: boolean;
}

/** The CA: the operator's own certificate, and those of the workspaces. */
export interface Authority {
  /** Reads the CA, or makes one. To be awaited once, before anything else is called; afterwards it reads again. */
  load(): Promise<void>;
  /**
   * Reads the CA now and then. `onChange` is called when certificates of workspaces may have become outdated. Ended by the
   * function that it returns.
   */
  follow(onChange: () => void): () => void;
  /** An agent's certificate was not trusted: the CA may have changed, and is read soon. */
  distrusted(): void;
  /** What the operator shows to agents, as of now. */
  operatorCredentials(): Credentials;
  /** Whether the certificate in a workspace's Secret still serves, and why not. */
  assess(certificate: Certificate | undefined): Promise<CertificateState>;
  /** A new certificate for the workspace's Secret (keys `ca.crt`, `tls.crt`, `tls.key`). */
  workspaceCertificate(workspace: WorkspaceRef): Promise<Certificate>;
}

export type Preparation =
  | { readonly state: "running"; readonly phase?: PreparePhase }
  | { readonly state: "done"; readonly result: PrepareResult }
  /** A run is active: what is prepared stays as it is until it ends. Tried again by itself. */
  | { readonly state: "busy"; readonly message: string; readonly activeRun?: string }
  /** Tried again by itself, at growing intervals. */
  | { readonly state: "unreachable"; readonly message: string; readonly sinceMs: number };

export interface Preparations {
  /** Begins the preparation where this pod was not asked for the same before; otherwise only tells how it stands. */
  ensure(pod: AgentPod, request: PrepareRequest): Preparation;
  /** Whether this pod's agent has answered to what it was last asked. */
  hasAnswered(pod: AgentPod): boolean;
  /** Asks again for what is done: after a failure that may pass. */
  retry(pod: AgentPod): void;
  /** Asks again for what was done, because the agent no longer has it: a destroy took the stack away, for one. */
  renew(pod: AgentPod): void;
  /** Drops what is known of a workspace that is gone or asleep. */
  forget(workspace: WorkspaceRef): void;
}

/** What preparing tells of the projects: runs do not repeat it. */
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
      /** Why there are none, where there should be some. */
      readonly outputsProblem?: string;
    }
  /** The agent knows no such run, or will not begin it: its own word. "unprepared" and "busy" are asked again. */
  | { readonly state: "refused"; readonly code: "unprepared" | "busy" | "notFound" | "other"; readonly message: string }
  | { readonly state: "unreachable"; readonly message: string; readonly sinceMs: number };

export interface Runs {
  /** What is known of a run in that pod; undefined when it is not followed. Changes nothing. */
  look(podUid: string, runId: string): Run | undefined;
  /** Starts the run, or takes it up again where it is: `start` is idempotent by its runId. */
  ensure(pod: AgentPod, request: StartRequest): Run;
  /** Takes up a run that was started before; never starts one. */
  attach(pod: AgentPod, runId: string): Run;
  /** Asks the agent to end a run; its result tells when it has. */
  cancel(pod: AgentPod, runId: string): void;
  forget(runId: string): void;
}

/** For shutdown and the loss of leadership: ends every stream. What the agents do goes on; a later `ensure` finds it. */
export interface Stoppable {
  stop(): Promise<void>;
}
