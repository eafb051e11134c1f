/** The one place that computes a Stack's status. Ready follows from the outcome and is set nowhere else. */
import type { Condition, StackReason, StackStatus } from "@pko/api";
import { assertNever } from "@pko/rpc";

import { truncate } from "../shared/truncate.ts";
import type { Outcome } from "./outcome.ts";
import type { Plan } from "./plan.ts";
import type { Noted } from "./result.ts";
import { requestOf, timeText } from "./trigger.ts";
import { specOf, statusOfStack, type StackView } from "./view.ts";

export function statusOf(view: StackView, { step, outcome }: Pick<Plan, "step" | "outcome">): StackStatus {
  const before = statusOfStack(view);
  if (outcome.kind === "keep") return before;
  const current = currentUpdateOf(view, step);
  return {
    observedGeneration: view.stack.metadata.generation ?? 0,
    ...(requestOf(view.stack) && { observedReconcileRequest: requestOf(view.stack) }),
    conditions: conditionsFor(view, outcome),
    ...(current && { currentUpdate: current }),
    ...waitingOf(view, outcome),
    ...nextOf(outcome),
    ...rememberedOf(before, newsOf(before, step)),
  };
}

function newsOf({ lastUpdate }: StackStatus, step: Plan["step"]): Partial<Noted> {
  if (step.kind === "note") return step.noted;
  if (step.kind !== "writeOutputs" || !lastUpdate) return {};
  const { outputsPending: _, ...written } = lastUpdate;
  return { lastUpdate: written };
}

/** What updates have left. */
function rememberedOf(before: StackStatus, noted: Partial<Noted>): StackStatus {
  const { lastUpdate, outputs, deployed, projectInfo } = { ...before, ...noted };
  return {
    ...(lastUpdate && { lastUpdate }),
    ...(outputs && { outputs }),
    ...(deployed !== undefined && { deployed }),
    ...(projectInfo && { projectInfo }),
  };
}

function currentUpdateOf(view: StackView, step: Plan["step"]): StackStatus["currentUpdate"] {
  const running = view.updates.find(({ state }) => state === "running");
  const created =
    step.kind === "createUpdate" ? { name: step.update.metadata.name ?? "", trigger: step.trigger } : undefined;
  const { name, trigger } = created ?? running ?? {};
  if (name === undefined) return undefined;
  // Of one that another operator made, the status knows more than the Update.
  const { currentUpdate } = statusOfStack(view);
  if (!trigger) return currentUpdate?.name === name ? currentUpdate : { name };
  const { generation, reconcileRequest, revision } = trigger;
  return { name, generation, ...(reconcileRequest && { reconcileRequest }), ...(revision && { commit: revision }) };
}

type Verdict =
  | { readonly type: "Ready"; readonly message: string }
  | { readonly type: "Reconciling"; readonly reason: StackReason<"Reconciling">; readonly message: string }
  | { readonly type: "Stalled"; readonly reason: StackReason<"Stalled">; readonly message: string };

function verdictOf(view: StackView, outcome: Exclude<Outcome, { kind: "keep" }>): Verdict {
  switch (outcome.kind) {
    case "upToDate":
      return { type: "Ready", message: outcome.message };
    case "processing":
      return { type: "Reconciling", reason: "StackProcessing", message: outcome.message };
    case "prerequisites":
      return { type: "Reconciling", reason: "PrerequisiteNotSatisfied", message: outcome.message };
    case "retrying":
      return {
        type: "Reconciling",
        reason: outcome.preview ? "PreviewFailed" : "RetryingAfterFailure",
        message: `${outcome.message}\nIt is tried again at ${timeText(outcome.retryAt)}.`,
      };
    case "conflict": {
      const message = `${outcome.message}\nIt is tried again at ${timeText(outcome.retryAt)}.`;
      return specOf(view)?.retry.onConflict
        ? { type: "Reconciling", reason: "RetryingAfterFailure", message }
        : { type: "Stalled", reason: "UpdateConflict", message };
    }
    case "stalled": {
      const again = outcome.retryAt === undefined ? "" : `\nIt is tried again at ${timeText(outcome.retryAt)}.`;
      return { type: "Stalled", reason: outcome.reason, message: `${outcome.message}${again}` };
    }
    default:
      return assertNever(outcome);
  }
}

type Statement = Pick<Condition, "type" | "status" | "reason" | "message">;

function conditionsFor(view: StackView, outcome: Exclude<Outcome, { kind: "keep" }>): Condition[] {
  const verdict = verdictOf(view, outcome);
  const message = clipped(verdict.message);
  if (verdict.type === "Ready") {
    return [timed(view, { type: "Ready", status: "True", reason: "ProcessingCompleted", message })];
  }
  const isStalled = verdict.type === "Stalled";
  const reason: StackReason<"Ready"> = isStalled ? "NotReadyStalled" : "NotReadyInProgress";
  return [
    timed(view, { type: "Ready", status: "False", reason, message }),
    timed(view, { type: verdict.type, status: "True", reason: verdict.reason, message }),
  ];
}

function timed({ stack, now }: StackView, statement: Statement): Condition {
  const before = stack.status?.conditions?.find(({ type }) => type === statement.type);
  return {
    ...statement,
    lastTransitionTime: before?.status === statement.status ? before.lastTransitionTime : timeText(now),
    observedGeneration: stack.metadata.generation ?? 0,
  };
}

/** A condition's message holds 32,768 characters; every watcher receives it, twice. */
const longestMessage = 8192;

const clipped = (text: string): string => truncate(text, longestMessage);

/** Since when the same is waited for. */
function waitingOf(view: StackView, outcome: Outcome): Pick<StackStatus, "waiting"> {
  const what = "waitingFor" in outcome ? outcome.waitingFor : undefined;
  if (what === undefined) return {};
  const before = statusOfStack(view).waiting;
  return { waiting: { for: what, since: before?.for === what ? before.since : timeText(view.now) } };
}

function nextOf(outcome: Outcome): Pick<StackStatus, "next"> {
  if (outcome.kind === "upToDate" && outcome.nextAt !== undefined) {
    return { next: { what: "the periodic resync", time: timeText(outcome.nextAt) } };
  }
  const retryAt = "retryAt" in outcome ? outcome.retryAt : undefined;
  return retryAt === undefined ? {} : { next: { what: "another try", time: timeText(retryAt) } };
}
