/** The state of an Update, as its status reports it. A closed union. */
import type { UpdateReason, UpdateStalledReason } from "@pko/api";
import type { Progress } from "@pko/records";
import type { RunResult } from "@pko/rpc";

export type Outcome =
  | { readonly kind: "unchanged" }
  /** The operation has not started, because something is missing. */
  | {
      readonly kind: "waiting";
      readonly reason: "WorkspaceNotFound" | "WorkspaceNotReady" | "WaitingForSlot";
      readonly message: string;
    }
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
    "UpdateSucceeded" | "UpdateFailed" | "Failed" | "Aborted" | "Canceled" | "TimedOut" | "Unknown"
  >;
  readonly message: string;
  /** Present if the agent reported one. */
  readonly result?: RunResult;
}
