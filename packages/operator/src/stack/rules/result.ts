/** Rules about finished updates, and about a Stack for which no update is due. */
import type { LastUpdate, NormalStack } from "@pko/api";

import { parseTimestamp } from "../../shared/parse-timestamp.ts";
import { recordedUpdates, resultToRecord, unrecordedUpdate } from "../history/result.ts";
import { isCancelled, lastTypeOf } from "../history/trigger.ts";
import * as messages from "../messages.ts";
import { processing, stalled, type Outcome } from "../outcome.ts";
import { unchanged, type StackPlan, type Step } from "../steps.ts";
import { conflictFailure, isDeleting, lastUpdateIn, validSpec, type StackView } from "../view.ts";
import { driftDue } from "./drift-due.ts";
import { nextDue, retryTime, type Due } from "./due.ts";
import { blockedBy, lostOutputs } from "./ownership.ts";
import { earliestStart } from "./windows.ts";

export function updatesOrphaned({ orphans }: StackView): StackPlan | undefined {
  if (orphans.length === 0) return undefined;
  return { steps: [{ kind: "removeOrphanFinalizers", updates: orphans }], outcome: unchanged };
}

export function resultsRecorded(view: StackView): StackPlan | undefined {
  const updates = recordedUpdates(view);
  if (updates.length === 0) return undefined;
  return { steps: [{ kind: "removeUpdateFinalizers", updates }], outcome: unchanged };
}

export function resultUnrecorded(view: StackView): StackPlan | undefined {
  const update = unrecordedUpdate(view);
  if (!update) return undefined;
  const result = resultToRecord(view, update);
  const { lastUpdate } = result;
  const steps: Step[] = [{ kind: "recordResult", result }];
  if (!lastUpdate.outputsPending) return { steps, outcome: outcomeAfter(view, lastUpdate) };
  const { outcome, requeueAt } = pendingOutputs(view, lastUpdate);
  return { steps, outcome, ...(requeueAt !== undefined && { requeueAt }) };
}

function outcomeAfter(view: StackView, last: LastUpdate): Outcome {
  const spec = validSpec(view);
  if (last.state !== "succeeded") {
    return isCancelled(view.stack, last.name)
      ? stalled("UpdateFailed", messages.cancelled(last))
      : failedOutcome(view, last);
  }
  if (isDeleting(view)) return processing(messages.destroyed);
  if (last.generation !== (view.stack.metadata.generation ?? 0)) return processing(messages.specChanged);
  const endedAt = parseTimestamp(last.lastResyncTime);
  const nextAt =
    spec?.resync.always && endedAt !== undefined ? earliestStart(view, endedAt + spec.resync.everyMs) : undefined;
  return upToDateOutcome(view, last, nextAt);
}

/** No update is due: the last one succeeded, is retried later, or was cancelled. */
export function noUpdateDue(view: StackView): StackPlan | undefined {
  const due = nextDue(view);
  const spec = validSpec(view);
  if (!due || !spec || due.kind === "now") return undefined;
  const last = lastUpdateIn(view) ?? {};
  if (due.kind === "retryAt") {
    return { steps: [], outcome: failedOutcome(view, last), requeueAt: earliestStart(view, due.at) };
  }
  const outcome = readyOutcome(view) ?? givenUpOutcome(last, due);
  const check = driftDue(view);
  const resyncAt = due.kind === "resyncAt" ? earliestStart(view, due.at) : Infinity;
  const requeueAt = Math.min(resyncAt, "at" in check ? check.at : Infinity);
  const plan: StackPlan = { steps: [], outcome, ...(requeueAt < Infinity && { requeueAt }) };
  return reclaimWorkspace(view, spec, plan) ?? writePendingOutputs(view, last, plan);
}

/** Undefined unless the last update succeeded and none is due. */
export function readyOutcome(view: StackView): Outcome | undefined {
  const due = nextDue(view);
  const last = lastUpdateIn(view);
  if (!due || due.kind === "now" || due.kind === "retryAt" || last?.state === "failed") return undefined;
  const outcome = upToDateOutcome(view, last ?? {}, due.kind === "resyncAt" ? earliestStart(view, due.at) : undefined);
  const check = driftDue(view);
  return check.kind === "checkAt" ? { ...outcome, nextCheckAt: check.at } : outcome;
}

/** The last update was cancelled, or failed too often. */
function givenUpOutcome(last: LastUpdate, due: Due): Outcome {
  return due.kind === "exhausted" ? exhaustedOutcome(last, due) : stalled("UpdateFailed", messages.cancelled(last));
}

/** No event announces the end of another owner's Update. */
export const workspaceInUseMs = 10_000;

/** With workspaceReclaimPolicy Delete, the Workspace is deleted when no update is due. */
function reclaimWorkspace(view: StackView, spec: NormalStack, plan: StackPlan): StackPlan | undefined {
  const { workspace, now } = view;
  if (spec.workspace.reclaim !== "Delete" || workspace.kind !== "present") return undefined;
  const outcome = lastUpdateIn(view)?.outputsPending ? unchanged : plan.outcome;
  if (view.otherUpdate !== undefined) return { steps: [], outcome, requeueAt: now + workspaceInUseMs };
  return { ...plan, steps: [{ kind: "deleteWorkspace", uid: workspace.object.metadata.uid ?? "" }], outcome };
}

function writePendingOutputs(view: StackView, last: LastUpdate, plan: StackPlan): StackPlan {
  if (!last.outputsPending) return plan;
  if (view.outputs.kind === "read" && !view.occupiedOutputs) {
    return { ...plan, steps: [{ kind: "writeOutputs", updateName: last.name ?? "" }] };
  }
  const { outcome, requeueAt } = pendingOutputs(view, last);
  const nextAt = Math.min(requeueAt ?? Infinity, plan.requeueAt ?? Infinity);
  return { steps: [], outcome, ...(Number.isFinite(nextAt) && { requeueAt: nextAt }) };
}

/** Why the outputs of the last update are not in the Secret that other Stacks read. */
function pendingOutputs(view: StackView, last: LastUpdate): Pick<StackPlan, "outcome" | "requeueAt"> {
  const { occupiedOutputs } = view;
  if (!occupiedOutputs) return lostOutputs(view, last.name ?? "");
  return blockedBy(view, occupiedOutputs, (conflict) => messages.outputsNotWritten(last.name ?? "", conflict));
}

type UpToDate = Extract<Outcome, { kind: "upToDate" }>;

function upToDateOutcome({ workspace, source }: StackView, last: LastUpdate, nextAt: number | undefined): UpToDate {
  const isReady = workspace.kind === "present" && workspace.state.kind === "ready";
  const warnings = [isReady && workspace.state.warning, source.kind === "ready" && source.warning, last.warning];
  return {
    kind: "upToDate",
    message: messages.upToDate(
      last,
      warnings.flatMap((warning) => warning || []),
    ),
    ...(nextAt !== undefined && { nextAt }),
  };
}

/** Failures in a row after which the Stack is Stalled. It is still retried. */
const stalledAfter = 3;

function failedOutcome(view: StackView, last: LastUpdate): Outcome {
  const spec = validSpec(view);
  const due = nextDue(afterResult(view, last));
  if (due?.kind === "exhausted") return exhaustedOutcome(last, due);
  const retryAt = earliestStart(view, spec ? retryTime(last, spec) : view.now);
  const message = messages.failed(last, spec?.maxFailures);
  if (last.failure === conflictFailure) {
    return { kind: "conflict", message: messages.failedByConflict(last, spec?.maxFailures), retryAt };
  }
  if ((last.failures ?? 1) >= stalledAfter) return { kind: "stalled", reason: "UpdateFailed", message, retryAt };
  return { kind: "retrying", preview: lastTypeOf(last) === "preview", message, retryAt };
}

/** The view after the result has been recorded. */
const afterResult = (view: StackView, lastUpdate: LastUpdate): StackView => ({
  ...view,
  stack: { ...view.stack, status: { ...view.stack.status, lastUpdate } },
});

const exhaustedOutcome = (last: LastUpdate, { maxFailures }: Extract<Due, { kind: "exhausted" }>): Outcome =>
  stalled("RetriesExhausted", messages.retriesExhausted(last, maxFailures));
