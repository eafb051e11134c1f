/** The steps that the rules of a Notification can request. */
import type { Plan } from "@pko/kube";

import type { Target } from "./delivery/send.ts";
import type { Occurrence } from "./occurrences/occurrence.ts";
import type { Outcome } from "./outcome.ts";

/** Starts the delivery of one message. */
export interface Step {
  readonly kind: "send";
  readonly target: Target;
  readonly occurrences: readonly Occurrence[];
}

export type NotificationPlan = Plan<Step, Outcome>;
