/** The rule about a Stack for which nothing may start. */
import * as messages from "../messages.ts";
import { wait, type StackPlan } from "../steps.ts";
import { isDeleting, suspendedBy, type StackView } from "../view.ts";

/** Nothing is requeued: the Stack, or the switch of the operator, will change. */
export function suspended(view: StackView): StackPlan | undefined {
  const by = suspendedBy(view);
  if (by.length === 0) return undefined;
  const message = messages.suspended(by, isDeleting(view) ? "destroy" : "update");
  return wait({ kind: "suspended", message, waitingFor: messages.endOfSuspension });
}
