/** How an Update stands, as its plan sees it. Closed: status.ts has words for each. */
import type { UpdateReason, UpdateStall } from "@pko/api";
import type { Progress, RunResult } from "@pko/rpc";

/** How it ended. `result` is there when the agent told it. */
export interface Ending {
  readonly reason: Extract<
    UpdateReason,
    "UpdateSucceeded" | "UpdateFailed" | "Failed" | "Aborted" | "Canceled" | "Unknown"
  >;
  readonly message: string;
  readonly result?: RunResult;
}

export type Outcome =
  /** Nothing has begun, and something is missing. */
  | { readonly kind: "waiting"; readonly reason: "WorkspaceNotFound" | "WorkspaceNotReady"; readonly message: string }
  /** From here on it may run, in this pod and no other. */
  | { readonly kind: "intended"; readonly podUid: string }
  | {
      readonly kind: "progressing";
      readonly reason: "Progressing" | "WorkspaceNotReady" | "TransientFailure";
      readonly message: string;
      /** As it is to be told now; what was told before stays otherwise. */
      readonly progress?: Progress;
    }
  /** It may run, or have run, and nobody can tell until somebody acts. */
  | { readonly kind: "stalled"; readonly reason: UpdateStall; readonly message: string }
  | { readonly kind: "ended"; readonly ending: Ending; readonly kept: Kept };

/** The Secrets of what a run left. */
export interface Kept {
  readonly outputs?: string;
  readonly stdout?: string;
  /** What could not be kept, in sentences. */
  readonly notes: readonly string[];
}
