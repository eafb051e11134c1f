/** The events of a Stack, with the reasons of the Go operator. Pure: each is recorded once, when its cause appears. */
import { stackEvents, type StackEvent, type StackReason } from "@pko/api";
import type { EventNote } from "@pko/kube";

import { findCondition } from "../shared/objects/conditions.ts";
import { driftCount } from "../shared/drift.ts";
import { approvalNews, type ApprovalNews } from "./history/approval.ts";
import type { DriftRecord } from "./history/drift.ts";
import * as messages from "./messages.ts";
import type { Outcome } from "./outcome.ts";
import type { StackPlan, Step } from "./steps.ts";
import { conflictFailure, suspendedBy, wasSuspended, withdrawnFailure, type StackView } from "./view.ts";

export function stackEventsFor(view: StackView, { steps, outcome }: StackPlan): EventNote[] {
  const { rejectedOutputs } = view;
  const news = outcome.kind === "unchanged" ? [] : approvalNews(view, steps);
  return [
    ...news.flatMap((each) => approvalEvents(view, each)),
    ...steps.flatMap((step) => stepEvents(view, step)),
    ...stalledEvents(view, outcome),
    ...suspensionEvents(view, outcome),
    ...(rejectedOutputs ? [outputsEvent(messages.outputsRejected(rejectedOutputs))] : []),
  ];
}

const eventFor = (reason: StackEvent, message: string): EventNote => ({ type: stackEvents[reason], reason, message });

const outputsEvent = (message: string): EventNote => eventFor("StackOutputRetrievalFailure", message);

function approvalEvents({ source }: StackView, { kind, request }: ApprovalNews): EventNote[] {
  switch (kind) {
    case "awaiting":
      return [eventFor("StackAwaitingApproval", messages.approvalRequested(request))];
    case "approved":
      return [eventFor("StackApproved", messages.approved(request))];
    // The stalled Stack reports it.
    case "rejected":
      return [];
    case "expired":
      return [eventFor("StackApprovalExpired", messages.requestExpired(request))];
    case "superseded": {
      const why = source.kind === "ready" ? source.contentProblem : undefined;
      return [eventFor("StackApprovalSuperseded", messages.requestSuperseded(request, why))];
    }
  }
}

function stepEvents(view: StackView, step: Step): EventNote[] {
  switch (step.kind) {
    case "recordResult":
      return resultEvents(view, step);
    case "recordDrift":
      return driftEvents(view, step.record);
    case "createUpdate":
      return startEvents(view, step);
    case "deleteWorkspace":
      return [eventFor("WorkspaceDeleted", messages.workspaceReclaimed)];
    case "addFinalizer":
    case "removeFinalizer":
    case "removeOrphanFinalizers":
    case "removeUpdateFinalizers":
    case "recordPlan":
    case "recordSkippedCommit":
    case "writeOutputs":
    case "requestPrerequisites":
    case "checkInputs":
    case "claimSlot":
    case "applyWorkspace":
    case "withdrawUpdate":
    case "deleteUpdates":
      return [];
  }
}

function startEvents(view: StackView, step: Extract<Step, { kind: "createUpdate" }>): EventNote[] {
  const { trigger, update, stage } = step;
  // Drift checks are frequent; only what they find is of interest.
  if (trigger.type === "refresh") return [];
  const name = update.metadata.name ?? "";
  const isPlan = stage?.kind === "plan";
  const message = messages.starting({ type: trigger.type, name, isPlan }, messages.purpose(step));
  const ignored = trigger.type === "destroy" && !isPlan ? dependentEvents(view) : [];
  return [eventFor("StackUpdateDetected", message), ...ignored];
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

/** When drift appears, changes or disappears, and when checks begin to fail. */
function driftEvents({ stack }: StackView, { drift, verdict }: DriftRecord): EventNote[] {
  const before = stack.status?.drift;
  const wasDrifted = before !== undefined && driftCount(before) > 0;
  switch (verdict.reason) {
    case "DriftDetected":
      return wasDrifted && before.summary === drift.summary ? [] : [eventFor("StackDriftDetected", verdict.message)];
    case "NoDrift":
      return wasDrifted ? [eventFor("StackDriftResolved", verdict.message)] : [];
    case "DriftCheckFailed":
      return (before?.failures ?? 0) > 0 ? [] : [eventFor("StackDriftCheckFailed", verdict.message)];
  }
}

function resultEvents(view: StackView, { result }: Extract<Step, { kind: "recordResult" }>): EventNote[] {
  const { outputs } = view;
  const { name = "", type = "up", state, failure } = result.lastUpdate;
  if (state === "succeeded") {
    const reason = type === "destroy" ? "StackDestroyed" : "StackCreated";
    const lost = outputs.kind === "lost" ? [outputsEvent(outputs.message)] : [];
    const corrected = result.drift ? driftEvents(view, result.drift) : [];
    return [eventFor(reason, messages.succeeded({ type, name }, result.lastUpdate)), ...lost, ...corrected];
  }
  if (failure === withdrawnFailure) return [];
  const reason = (failure !== undefined && failureEvents[failure]) || "StackUpdateFailure";
  return [eventFor(reason, messages.failed(result.lastUpdate))];
}

const failureEvents: Readonly<Record<string, StackEvent>> = {
  [conflictFailure]: "StackUpdateConflictDetected",
  stackNotFound: "StackNotFound",
  timedOut: "StackUpdateTimedOut",
  policyViolation: "StackPolicyViolated",
};

function suspensionEvents(view: StackView, outcome: Outcome): EventNote[] {
  if (outcome.kind === "suspended") return wasSuspended(view) ? [] : [eventFor("StackSuspended", outcome.message)];
  const isResumed = wasSuspended(view) && suspendedBy(view).length === 0 && outcome.kind !== "unchanged";
  return isResumed ? [eventFor("StackResumed", messages.resumed)] : [];
}

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
  WorkspaceClassConflict: "WorkspaceClassConflict",
  WorkspaceClassLimitExceeded: "StackInitializationFailure",
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
