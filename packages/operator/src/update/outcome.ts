/** What a pass over an Update decides: the steps to perform and the outcome that its status reports. Both are closed unions. */
import type { UpdateReason, UpdateStalledReason } from "@pko/api";
import type { Plan } from "@pko/kube";
import type { Progress, RunResult, StartRequest } from "@pko/rpc";

import type { AgentPod } from "../agents/agents.ts";
import type { ResultSecrets } from "./desired/result-secrets.ts";

export type UpdatePlan = Plan<Step, Outcome>;

/**
 * The `confirm…` steps read from the API server what the stores claim, because a store may be half a minute old
 * (docs/adr/0010-stores-prove-nothing.md). If the claim is not confirmed, the view is stale.
 */
export type Step =
  /** The Workspace is ready and the pod belongs to it: a run must not start in the wrong pod. */
  | { readonly kind: "confirmReady" }
  /** The recorded pod does not exist: a run that continues must not be reported as lost, because it would be repeated. */
  | { readonly kind: "confirmPodDeleted" }
  /** The prepared Workspace does not have the stack. */
  | { readonly kind: "confirmStackUnknown" }
  | { readonly kind: "addFinalizer" }
  | { readonly kind: "removeFinalizer" }
  /** Starts the run, or attaches to it if the agent has started it before. */
  | { readonly kind: "followRun"; readonly pod: AgentPod; readonly request: StartRequest }
  | { readonly kind: "cancelRun"; readonly pod: AgentPod; readonly runId: string }
  /** Sends no more requests about the run to an agent. */
  | { readonly kind: "forgetRun" }
  /** Before the status is written, so that a complete Update has all its Secrets. */
  | { readonly kind: "storeResult"; readonly secrets: ResultSecrets }
  | { readonly kind: "deleteExpired" };

export type Outcome =
  | { readonly kind: "unchanged" }
  /** The operation has not started, because something is missing. */
  | { readonly kind: "waiting"; readonly reason: "WorkspaceNotFound" | "WorkspaceNotReady"; readonly message: string }
  /** From here on the operation may run, in this pod and no other. */
  | { readonly kind: "started"; readonly podUid: string }
  | {
      readonly kind: "progressing";
      readonly reason: "Progressing" | "WorkspaceNotReady" | "TransientFailure";
      readonly message: string;
      /** Absent if the progress that was last reported stays in the status. */
      readonly progress?: Progress;
    }
  /** Whether the operation still runs is unknown until a user acts. */
  | { readonly kind: "stalled"; readonly reason: UpdateStalledReason; readonly message: string }
  | { readonly kind: "ended"; readonly ending: Ending };

export interface Ending {
  readonly reason: Extract<
    UpdateReason,
    "UpdateSucceeded" | "UpdateFailed" | "Failed" | "Aborted" | "Canceled" | "Unknown"
  >;
  readonly message: string;
  /** Present if the agent reported one. */
  readonly result?: RunResult;
}
