/** The state of a Workspace: everything that its status can report. */
import type { PrepareFailure, PreparePhase } from "@pko/rpc";

export interface Warning {
  /** The reason of its event. */
  readonly reason: "StateNotKept" | "SecretsProviderIgnored";
  readonly message: string;
}

/** What is wrong is about the WorkspaceClass of the namespace. */
export type ClassReason = "WorkspaceClassConflict" | "WorkspaceClassLimitExceeded";

export type Outcome =
  | { readonly kind: "deleting" }
  /** The spec, or an object that it names, must change first. */
  | { readonly kind: "misconfigured"; readonly message: string; readonly reason?: ClassReason }
  /** An object of another owner has a name that the workspace needs. */
  | { readonly kind: "blocked"; readonly message: string }
  | { readonly kind: "waiting"; readonly message: string; readonly isStuck: boolean }
  /** Too many updates are running. */
  | { readonly kind: "waitingForSlot"; readonly message: string }
  | { readonly kind: "rolling"; readonly message: string }
  /** A change waits until the run in the pod finishes. */
  | { readonly kind: "waitingForRun"; readonly message: string }
  | { readonly kind: "preparing"; readonly phase?: PreparePhase }
  | { readonly kind: "failed"; readonly failure: PrepareFailure }
  | { readonly kind: "unreachable"; readonly message: string }
  | {
      readonly kind: "ready";
      readonly address: string;
      readonly pulumiVersion?: string;
      /** The workspace works, but its owner should know this. */
      readonly warning?: Warning;
      /** An earlier commit, if no selected file differs from it. */
      readonly unchangedSince?: string;
    }
  /** The pod's node may be lost, and a person has to confirm that. */
  | { readonly kind: "nodeLost"; readonly message: string }
  /** Ready, and scaled to zero until an Update wakes it. */
  | { readonly kind: "idle" }
  /** The status stays as it is. */
  | { readonly kind: "unchanged" };
