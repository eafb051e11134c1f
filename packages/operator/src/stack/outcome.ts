/** The state of a Stack, as its plan sees it. Closed: status.ts has a condition for each. */
import type { StackReason } from "@pko/api";

import type { SourceProblem } from "../sources/source-view.ts";

export type Outcome =
  /** The current status stays. */
  | { readonly kind: "unchanged" }
  | {
      readonly kind: "upToDate";
      readonly message: string;
      /** The next periodic resync. */
      readonly nextAt?: number;
      /** The next drift check. */
      readonly nextCheckAt?: number;
    }
  | { readonly kind: "processing"; readonly message: string; readonly waitingFor?: string }
  | { readonly kind: "prerequisites"; readonly message: string; readonly waitingFor: string }
  /** Stacks that depend on this one have to be deleted first. */
  | { readonly kind: "dependents"; readonly message: string; readonly waitingFor: string }
  | { readonly kind: "suspended"; readonly message: string; readonly waitingFor: string }
  /** Too many updates are running. */
  | { readonly kind: "waitingForSlot"; readonly message: string; readonly waitingFor: string }
  /** `what`: the update that is due. */
  | { readonly kind: "outsideWindow"; readonly message: string; readonly what: string; readonly opensAt?: number }
  | {
      readonly kind: "awaitingApproval";
      readonly message: string;
      readonly waitingFor: string;
      readonly expiresAt: number;
    }
  | { readonly kind: "retrying"; readonly preview: boolean; readonly message: string; readonly retryAt: number }
  /** Stalled, unless the spec has retryOnUpdateConflict. */
  | { readonly kind: "conflict"; readonly message: string; readonly retryAt: number }
  | {
      readonly kind: "stalled";
      readonly reason: StackReason<"Stalled">;
      readonly message: string;
      readonly retryAt?: number;
      readonly sourceProblem?: SourceProblem;
    };

export const processing = (message: string, waitingFor?: string): Outcome => ({
  kind: "processing",
  message,
  ...(waitingFor !== undefined && { waitingFor }),
});

export const stalled = (reason: StackReason<"Stalled">, message: string): Outcome => ({
  kind: "stalled",
  reason,
  message,
});
