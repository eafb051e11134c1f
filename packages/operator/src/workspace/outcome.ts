/** How it stands with a Workspace: the closed set of what its status can say. */
import type { PrepareFailure, PreparePhase } from "@pko/rpc";

export interface Warning {
  /** Of its event. */
  readonly reason: "StateNotKept" | "SecretsProviderIgnored";
  readonly message: string;
}

export type Outcome =
  | { readonly kind: "deleting" }
  /** The spec, or what it names, has to change first. */
  | { readonly kind: "refused"; readonly message: string }
  /** Somebody else's object has a name that the workspace needs. */
  | { readonly kind: "blocked"; readonly message: string }
  | { readonly kind: "waiting"; readonly message: string; readonly isStuck: boolean }
  | { readonly kind: "rolling"; readonly message: string }
  /** A change waits for the run that is going on in the pod. */
  | { readonly kind: "held"; readonly message: string }
  | { readonly kind: "preparing"; readonly phase?: PreparePhase }
  | { readonly kind: "failed"; readonly failure: PrepareFailure }
  | { readonly kind: "unreachable"; readonly message: string }
  | {
      readonly kind: "ready";
      readonly address: string;
      readonly pulumiVersion?: string;
      /** What its owner should know all the same. */
      readonly warning?: Warning;
    }
  /** The pod's node may be lost, and somebody has to confirm that. */
  | { readonly kind: "nodeLost"; readonly message: string }
  | { readonly kind: "asleep" }
  /** What status says already is still so. */
  | { readonly kind: "unchanged" };
