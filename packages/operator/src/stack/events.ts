/** What people are told of a Stack, under the reference's names. Pure: told once, when it becomes so. */
import { stackEvents, type StackEvent, type StackReason } from "@pko/api";
import type { EventNote } from "@pko/kube";
import { assertNever } from "@pko/rpc";

import { because, conflict, withdrawn } from "./due.ts";
import type { Outcome } from "./outcome.ts";
import type { Step } from "./plan.ts";
import type { StackView } from "./view.ts";

export function eventsOf(view: StackView, step: Step, outcome: Outcome): EventNote[] {
  return [...stepEvents(view, step), ...stalledEvents(view, outcome)];
}

const note = (reason: StackEvent, message: string): EventNote => ({ type: stackEvents[reason], reason, message });

function stepEvents(view: StackView, step: Step): EventNote[] {
  switch (step.kind) {
    case "note":
      return endEvents(view, step);
    case "createUpdate": {
      const what = `The ${step.trigger.type} ${step.update.metadata.name ?? ""}`;
      return [note("StackUpdateDetected", `${what} is being started for ${because(step)}.`)];
    }
    case "deleteWorkspace":
      return [note("WorkspaceDeleted", "The workspace is deleted, as workspaceReclaimPolicy says.")];
    case "none":
    case "addFinalizer":
    case "removeFinalizer":
    case "writeOutputs":
    case "askPrerequisites":
    case "applyWorkspace":
    case "withdrawUpdate":
      return [];
    default:
      return assertNever(step);
  }
}

function endEvents(view: StackView, { noted }: Extract<Step, { kind: "note" }>): EventNote[] {
  const { name = "", type = "up", message = "", state, failure, summary } = noted.lastUpdate;
  if (state === "succeeded") {
    const told = summary ? `The ${type} ${name} succeeded: ${summary}.` : `The ${type} ${name} succeeded.`;
    const lost = view.outputs.kind === "lost" ? [note("StackOutputRetrievalFailure", view.outputs.message)] : [];
    return [note(type === "destroy" ? "StackDestroyed" : "StackCreated", told), ...lost];
  }
  // Nothing has happened.
  if (failure === withdrawn) return [];
  if (failure === conflict) return [note("StackUpdateConflictDetected", `The ${type} ${name} failed: ${message}`)];
  if (failure === "stackNotFound") return [note("StackNotFound", `The ${type} ${name} failed: ${message}`)];
  return [note("StackUpdateFailure", `The ${type} ${name} failed: ${message}`)];
}

function stalledEvents({ stack }: StackView, outcome: Outcome): EventNote[] {
  if (outcome.kind !== "stalled") return [];
  const before = stack.status?.conditions?.find(({ type }) => type === "Stalled");
  if (before?.reason === outcome.reason && before.message.startsWith(outcome.message)) return [];
  const isAuth = outcome.reason === "SourceUnavailable" && outcome.trouble === "auth";
  const event = isAuth ? "StackGitAuthenticationFailure" : stalledEvent[outcome.reason];
  return event ? [note(event, outcome.message)] : [];
}

/** None where the end of the update was reported already, or the namespace reports it. */
const stalledEvent: Readonly<Record<StackReason<"Stalled">, StackEvent | undefined>> = {
  SpecInvalid: "StackConfigInvalid",
  SourceUnavailable: "StackInitializationFailure",
  PulumiVersionTooLow: "StackInitializationFailure",
  WorkspaceFailed: "StackInitializationFailure",
  NodeLost: "StackNodeLost",
  OwnershipConflict: "OwnershipConflict",
  OutputsLost: "StackOutputRetrievalFailure",
  UpdateConflict: undefined,
  UpdateFailed: undefined,
  NamespaceTerminating: undefined,
};
