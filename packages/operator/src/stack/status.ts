/** Computes the status of a Stack. Pure. Ready follows from the outcome and is set nowhere else. */
import type { Condition, StackReason, StackStatus } from "@pko/api";
import { timestamp } from "@pko/kube";

import { conditionAt, findCondition, withoutMessages } from "../shared/objects/conditions.ts";
import { truncate } from "../shared/truncate.ts";
import { approvalAfter } from "./history/approval.ts";
import { isDriftShown, type DriftRecord } from "./history/drift.ts";
import type { Result } from "./history/result.ts";
import { reconcileRequestOf } from "./history/trigger.ts";
import * as messages from "./messages.ts";
import type { Outcome } from "./outcome.ts";
import type { StackPlan, Step } from "./steps.ts";
import { presentStatus, unfinishedUpdate, validSpec, type StackView } from "./view.ts";

type ShownOutcome = Exclude<Outcome, { kind: "unchanged" }>;

export function stackStatus(view: StackView, { steps, outcome }: Pick<StackPlan, "steps" | "outcome">): StackStatus {
  const before = presentStatus(view);
  const record = driftRecord(steps);
  if (outcome.kind === "unchanged") {
    const after = { ...before, ...recordedSkip(view, steps) };
    return record ? { ...after, drift: record.drift, conditions: withDrifted(view, before, record) } : after;
  }
  const currentUpdate = currentUpdateAfter(view, steps);
  const observedReconcileRequest = reconcileRequestOf(view.stack);
  const approval = approvalAfter(view, steps);
  return {
    observedGeneration: view.stack.metadata.generation ?? 0,
    ...(observedReconcileRequest && { observedReconcileRequest }),
    conditions: [...conditionsFor(view, outcome), ...driftedCondition(view, record), ...pullRequestsCondition(view)],
    ...(currentUpdate && { currentUpdate }),
    ...waitingFor(view, outcome),
    ...nextAction(outcome),
    ...recordedResult(before, newResult(before, steps)),
    ...recordedDrift(view, record),
    ...(approval && { approval }),
    ...recordedSkip(view, steps),
    ...(before.pullRequests && { pullRequests: before.pullRequests }),
    ...(before.cancelledPreviews && { cancelledPreviews: before.cancelledPreviews }),
  };
}

/** While a Stack is processed, the message and what it waits for only describe progress. */
export function withoutProgress(status: StackStatus): object {
  const { conditions, waiting: _, ...rest } = status;
  const isProcessing = conditions?.some(
    ({ reason }) => reason === ("StackProcessing" satisfies StackReason<"Reconciling">),
  );
  return isProcessing ? { ...rest, conditions: withoutMessages(conditions) } : status;
}

/** A result ends the skip, even of the same commit: the filters may have changed since. */
function recordedSkip(view: StackView, steps: readonly Step[]): Pick<StackStatus, "skippedCommit"> {
  for (const step of steps) {
    if (step.kind === "recordSkippedCommit") return { skippedCommit: step.skipped };
    if (step.kind === "recordResult") return {};
  }
  const { skippedCommit } = presentStatus(view);
  return skippedCommit ? { skippedCommit } : {};
}

function driftRecord(steps: readonly Step[]): DriftRecord | undefined {
  for (const step of steps) {
    if (step.kind === "recordDrift") return step.record;
    if (step.kind === "recordResult") return step.result.drift;
  }
  return undefined;
}

function recordedDrift(view: StackView, record: DriftRecord | undefined): Pick<StackStatus, "drift"> {
  const drift = record?.drift ?? presentStatus(view).drift;
  return drift && isDriftShown(view) ? { drift } : {};
}

/** Stays until the next check, whatever happens to the Stack before that. */
function driftedCondition(view: StackView, record: DriftRecord | undefined): Condition[] {
  const { stack, now } = view;
  if (!isDriftShown(view)) return [];
  const before = findCondition(stack, "Drifted");
  if (!record) return before ? [before] : [];
  const { message, ...verdict } = record.verdict;
  return [conditionAt(stack, { type: "Drifted", ...verdict, message: truncate(message, longestMessage) }, now)];
}

/** The controller of pull request previews writes it, and removes it. */
function pullRequestsCondition({ stack }: StackView): Condition[] {
  const condition = findCondition(stack, "PullRequestsPreviewed");
  return condition ? [condition] : [];
}

const withDrifted = (view: StackView, { conditions = [] }: StackStatus, record: DriftRecord): Condition[] => [
  ...conditions.filter(({ type }) => type !== "Drifted"),
  ...driftedCondition(view, record),
];

function newResult({ lastUpdate }: StackStatus, steps: readonly Step[]): Partial<Result> {
  for (const step of steps) {
    if (step.kind === "recordResult") return step.result;
    if (step.kind === "recordPlan") return step.plan;
    if (step.kind !== "writeOutputs" || !lastUpdate) continue;
    const { outputsPending: _, ...written } = lastUpdate;
    return { lastUpdate: written };
  }
  return {};
}

function recordedResult(before: StackStatus, result: Partial<Result>): StackStatus {
  const { lastUpdate, outputs, deployed, projectInfo } = { ...before, ...result };
  return {
    ...(lastUpdate && { lastUpdate }),
    ...(outputs && { outputs }),
    ...(deployed !== undefined && { deployed }),
    ...(projectInfo && { projectInfo }),
  };
}

function currentUpdateAfter(view: StackView, steps: readonly Step[]): StackStatus["currentUpdate"] {
  const step = steps.find(({ kind }) => kind === "createUpdate");
  const created =
    step?.kind === "createUpdate" ? { name: step.update.metadata.name ?? "", trigger: step.trigger } : undefined;
  const { name, trigger } = created ?? unfinishedUpdate(view) ?? {};
  if (name === undefined) return undefined;
  // The trigger of an Update that another operator created is only in the Stack's status.
  const { currentUpdate } = presentStatus(view);
  if (!trigger) return currentUpdate?.name === name ? currentUpdate : { name };
  const { generation, reconcileRequest, revision } = trigger;
  return { name, generation, ...(reconcileRequest && { reconcileRequest }), ...(revision && { commit: revision }) };
}

type Verdict =
  | { readonly type: "Ready"; readonly message: string }
  | { readonly type: "Reconciling"; readonly reason: StackReason<"Reconciling">; readonly message: string }
  | { readonly type: "Stalled"; readonly reason: StackReason<"Stalled">; readonly message: string };

function verdictOn(view: StackView, outcome: ShownOutcome): Verdict {
  const message = `${outcome.message}${retryText(outcome)}`;
  switch (outcome.kind) {
    case "upToDate":
      return { type: "Ready", message };
    case "processing":
      return { type: "Reconciling", reason: "StackProcessing", message };
    case "prerequisites":
      return { type: "Reconciling", reason: "PrerequisiteNotSatisfied", message };
    case "dependents":
      return { type: "Reconciling", reason: "WaitingForDependents", message };
    case "suspended":
      return { type: "Reconciling", reason: "Suspended", message };
    case "waitingForSlot":
      return { type: "Reconciling", reason: "WaitingForSlot", message };
    case "outsideWindow":
      return { type: "Reconciling", reason: "OutsideUpdateWindow", message };
    case "awaitingApproval":
      return { type: "Reconciling", reason: "AwaitingApproval", message };
    case "retrying":
      return { type: "Reconciling", reason: outcome.preview ? "PreviewFailed" : "RetryingAfterFailure", message };
    case "conflict":
      return validSpec(view)?.retry.onConflict
        ? { type: "Reconciling", reason: "RetryingAfterFailure", message }
        : { type: "Stalled", reason: "UpdateConflict", message };
    case "stalled":
      return { type: "Stalled", reason: outcome.reason, message };
  }
}

const retryTimeOf = (outcome: Outcome): number | undefined => ("retryAt" in outcome ? outcome.retryAt : undefined);

function retryText(outcome: Outcome): string {
  const retryAt = retryTimeOf(outcome);
  return retryAt === undefined ? "" : messages.retryTime(retryAt);
}

/** The API allows 32,768 characters. Every watcher receives the message, twice. */
const longestMessage = 8192;

function conditionsFor(view: StackView, outcome: ShownOutcome): Condition[] {
  const { stack, now } = view;
  const verdict = verdictOn(view, outcome);
  const message = truncate(verdict.message, longestMessage);
  if (verdict.type === "Ready") {
    return [conditionAt(stack, { type: "Ready", status: "True", reason: "ProcessingCompleted", message }, now)];
  }
  const reason: StackReason<"Ready"> = verdict.type === "Stalled" ? "NotReadyStalled" : "NotReadyInProgress";
  return [
    conditionAt(stack, { type: "Ready", status: "False", reason, message }, now),
    conditionAt(stack, { type: verdict.type, status: "True", reason: verdict.reason, message }, now),
  ];
}

/** The time stays the same while the Stack waits for the same. Its place in a queue changes. */
function waitingFor(view: StackView, outcome: Outcome): Pick<StackStatus, "waiting"> {
  const what = "waitingFor" in outcome ? outcome.waitingFor : undefined;
  if (what === undefined) return {};
  const before = presentStatus(view).waiting;
  const isSame = before?.for === what || (outcome.kind === "waitingForSlot" && messages.isSlotPlace(before?.for ?? ""));
  return { waiting: { for: what, since: isSame && before ? before.since : timestamp(view.now) } };
}

function nextAction(outcome: Outcome): Pick<StackStatus, "next"> {
  if (outcome.kind === "upToDate") {
    const { nextAt, nextCheckAt } = outcome;
    if (nextAt !== undefined) return { next: { what: messages.periodicResync, time: timestamp(nextAt) } };
    return nextCheckAt === undefined ? {} : { next: { what: messages.driftCheck, time: timestamp(nextCheckAt) } };
  }
  if (outcome.kind === "outsideWindow") {
    return outcome.opensAt === undefined ? {} : { next: { what: outcome.what, time: timestamp(outcome.opensAt) } };
  }
  if (outcome.kind === "awaitingApproval") {
    return { next: { what: messages.newPlan, time: timestamp(outcome.expiresAt) } };
  }
  const retryAt = retryTimeOf(outcome);
  return retryAt === undefined ? {} : { next: { what: messages.retry, time: timestamp(retryAt) } };
}
