/** How a Stack stands, as its plan sees it. Closed: status.ts has a condition for each. */
import type { StackReason } from "@pko/api";

import type { SourceTrouble } from "../sources/source-view.ts";

export type Outcome =
  /** The status as it is says all there is to say. */
  | { readonly kind: "keep" }
  | { readonly kind: "upToDate"; readonly message: string; readonly nextAt?: number }
  | { readonly kind: "processing"; readonly message: string; readonly waitingFor?: string }
  | { readonly kind: "prerequisites"; readonly message: string; readonly waitingFor: string }
  | { readonly kind: "retrying"; readonly preview: boolean; readonly message: string; readonly retryAt: number }
  /** Whether it is soon tried again is for the spec to say. */
  | { readonly kind: "conflict"; readonly message: string; readonly retryAt: number }
  | {
      readonly kind: "stalled";
      readonly reason: StackReason<"Stalled">;
      readonly message: string;
      readonly retryAt?: number;
      readonly trouble?: SourceTrouble;
    };
