/** The state of a Notification, and what a pass has to record. Closed: status.ts has a condition for each state. */
import type { NotificationStall } from "@pko/api";

import type { Occurrence } from "./occurrences/occurrence.ts";

export interface Outcome {
  readonly state: State;
  readonly news: News;
}

export type State =
  | { readonly kind: "delivering" }
  | { readonly kind: "failing"; readonly cause: string }
  | { readonly kind: "suspended" }
  | { readonly kind: "stalled"; readonly reason: NotificationStall; readonly message: string };

export type News =
  | { readonly kind: "none" }
  /** Events are reported from now on. */
  | { readonly kind: "started" }
  | { readonly kind: "delivered" | "dropped"; readonly occurrences: readonly Occurrence[] }
  | { readonly kind: "failed"; readonly cause: string; readonly retryAt: number };
