/** Why nothing starts: a suspension, closed update windows, or too many updates that are running. */
import { ignoreWindowsUntilAnnotation, leaseName, suspendAnnotation, type WindowState } from "@pko/api";
import { timestamp } from "@pko/kube";

import type { WaitingForSlot } from "../../shared/channels/slots.ts";
import { limitText, queueText } from "../../shared/slot-text.ts";
import type { Trigger, TriggerReason } from "../history/trigger.ts";
import type { Suspender } from "../view.ts";
import { purpose } from "./updates.ts";

export { isPlaceText as isSlotPlace, placeText as slotPlace } from "../../shared/slot-text.ts";

export const endOfSuspension = "the end of the suspension";
export const resumed = "The Stack is no longer suspended.";

const suspenders: Readonly<Record<Suspender, string>> = {
  stack: "spec.suspend is true",
  operator: "the operator is suspended",
};

const resumptions: Readonly<Record<Suspender, string>> = {
  stack: "set spec.suspend to false",
  operator: `remove the annotation ${suspendAnnotation} from Lease ${leaseName} in the operator's namespace`,
};

export function suspended(by: readonly Suspender[], next: "update" | "destroy"): string {
  const effect = next === "destroy" ? "its resources are not destroyed and it is not deleted" : "nothing starts";
  const why = by.map((each) => suspenders[each]).join(" and ");
  const remedy = by.map((each) => resumptions[each]).join(", and ");
  return `The Stack is suspended, because ${why}: ${effect}. To resume it, ${remedy}.`;
}

type Closed = Exclude<WindowState, { kind: "open" }>;

export const dueUpdate = (due: { reason: TriggerReason; trigger: Trigger }): string =>
  `the ${due.trigger.type} for ${purpose(due)}`;

export const waitingForSlot = (due: { reason: TriggerReason; trigger: Trigger }, slot: WaitingForSlot): string =>
  `The ${due.trigger.type} for ${purpose(due)} is due, but ${limitText(slot)}. It starts when its turn comes: ${queueText(slot)}.`;

/** `invalidOverride`: the value of the annotation, if it is not a time. */
export function outsideWindow(
  due: { reason: TriggerReason; trigger: Trigger },
  state: Closed,
  invalidOverride: string | undefined,
): string {
  const annotation = `the annotation ${ignoreWindowsUntilAnnotation}`;
  const example = "a time until which update windows are ignored, such as 2030-01-31T18:00:00Z";
  const remedy =
    invalidOverride === undefined
      ? `To start it earlier, set ${annotation} of the Stack to ${example}.`
      : `The value ${JSON.stringify(invalidOverride)} of ${annotation} is ignored: set it to ${example}.`;
  return `The ${due.trigger.type} for ${purpose(due)} is due, but no update window is open. ${nextOpening(state)} ${remedy}`;
}

function nextOpening(state: Closed): string {
  if (state.kind === "never") return "No update window will open again; change spec.updateWindows.";
  const { opensAt, timeZone } = state;
  const local = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "short" }).format(opensAt);
  const zoned = timeZone === "UTC" ? "" : ` (${local} in ${timeZone})`;
  return `The next one opens at ${timestamp(opensAt)}${zoned}.`;
}
