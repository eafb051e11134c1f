/** The events of a Stack, with the reasons of the Go operator. Pure: each is recorded once, when its cause appears. */
import { stackEvents, type StackEvent, type StackReason } from "@pko/api";
import type { EventNote } from "@pko/kube";

import { findCondition } from "../shared/conditions.ts";
import * as messages from "./messages.ts";
import type { Outcome } from "./outcome.ts";
import type { StackPlan, Step } from "./steps.ts";
import { conflictFailure, withdrawnFailure, type StackView } from "./view.ts";

export function stackEventsFor(view: StackView, { steps, outcome }: StackPlan): EventNote[] {
  const rejected = view.rejectedOutputs === undefined ? [] : [outputsEvent(view.rejectedOutputs)];
  return [...steps.flatMap((step) => stepEvents(view, step)), ...stalledEvents(view, outcome), ...rejected];
}

const eventFor = (reason: StackEvent, message: string): EventNote => ({ type: stackEvents[reason], reason, message });

const outputsEvent = (message: string): EventNote => eventFor("StackOutputRetrievalFailure", message);

function stepEvents(view: StackView, step: Step): EventNote[] {
  switch (step.kind) {
    case "recordResult":
      return resultEvents(view, step);
    case "createUpdate": {
      const { trigger, update } = step;
      const name = update.metadata.name ?? "";
      const message = messages.starting({ type: trigger.type, name }, messages.purpose(step));
      const ignored = trigger.type === "destroy" ? dependentEvents(view) : [];
      return [eventFor("StackUpdateDetected", message), ...ignored];
    }
    case "deleteWorkspace":
      return [eventFor("WorkspaceDeleted", messages.workspaceReclaimed)];
    case "addFinalizer":
    case "removeFinalizer":
    case "removeOrphanFinalizers":
    case "removeUpdateFinalizers":
    case "writeOutputs":
    case "requestPrerequisites":
    case "checkInputs":
    case "applyWorkspace":
    case "withdrawUpdate":
      return [];
  }
}

/** A destroy starts although other Stacks depend on this one. */
function dependentEvents({ dependents }: StackView): EventNote[] {
  const named = (isInCycle: boolean) =>
    dependents.filter((each) => each.isInCycle === isInCycle).map(({ name }) => name);
  const [ignored, inCycle] = [named(false), named(true)];
  return [
    ...(ignored.length > 0 ? [eventFor("StackDependentsIgnored", messages.dependentsIgnored(ignored))] : []),
    ...(inCycle.length > 0 ? [eventFor("StackDependentsIgnored", messages.dependentsInCycle(inCycle))] : []),
  ];
}

function resultEvents({ outputs }: StackView, { result }: Extract<Step, { kind: "recordResult" }>): EventNote[] {
  const { name = "", type = "up", state, failure } = result.lastUpdate;
  if (state === "succeeded") {
    const reason = type === "destroy" ? "StackDestroyed" : "StackCreated";
    const lost = outputs.kind === "lost" ? [outputsEvent(outputs.message)] : [];
    return [eventFor(reason, messages.succeeded({ type, name }, result.lastUpdate)), ...lost];
  }
  if (failure === withdrawnFailure) return [];
  const reason = (failure !== undefined && failureEvents[failure]) || "StackUpdateFailure";
  return [eventFor(reason, messages.failed(result.lastUpdate))];
}

const failureEvents: Readonly<Record<string, StackEvent>> = {
  [conflictFailure]: "StackUpdateConflictDetected",
  stackNotFound: "StackNotFound",
  timedOut: "StackUpdateTimedOut",
};

function stalledEvents({ stack }: StackView, outcome: Outcome): EventNote[] {
  if (outcome.kind !== "stalled") return [];
  const before = findCondition(stack, "Stalled");
  if (before?.reason === outcome.reason && before.message.startsWith(outcome.message)) return [];
  const isAuth = outcome.reason === "SourceUnavailable" && outcome.sourceProblem === "auth";
  const event = isAuth ? "StackGitAuthenticationFailure" : stalledEvent[outcome.reason];
  return event ? [eventFor(event, outcome.message)] : [];
}

/** None if the result of the update was reported already, or if the namespace reports the cause. */
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
  ApprovalRejected: "StackApprovalRejected",
  ApprovalPolicyMissing: "StackApprovalPolicyMissing",
  RetriesExhausted: "StackRetriesExhausted",
  UpdateNotStopped: "StackUpdateTimedOut",
  Protected: "StackProtected",
};
