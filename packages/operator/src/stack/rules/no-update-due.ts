/** Rules about a Stack for which no update is due. */
import type { LastUpdate } from "@pko/api";

import { skippedCommit } from "../history/skipped-commit.ts";
import { lastTypeOf } from "../history/trigger.ts";
import * as messages from "../messages.ts";
import { stalled, type Outcome } from "../outcome.ts";
import { unchanged, wait, type StackPlan } from "../steps.ts";
import { conflictFailure, lastUpdateIn, validSpec, type StackView } from "../view.ts";
import { driftDue } from "./drift/due.ts";
import { nextDue, retryTime, type Due } from "./due.ts";
import { blockedBy, lostOutputs } from "./ownership.ts";
import { earliestStart } from "./windows.ts";

export function retryScheduled(view: StackView): StackPlan | undefined {
  const due = nextDue(view);
  if (due?.kind !== "retryAt") return undefined;
  return wait(failedOutcome(view, lastUpdateIn(view) ?? {}), earliestStart(view, due.at));
}

/** No event announces the end of another owner's Update. */
export const workspaceInUseMs = 10_000;

/** With workspaceReclaimPolicy Delete. */
export function workspaceUnneeded(view: StackView): StackPlan | undefined {
  const { workspace, now } = view;
  const plan = noUpdateDue(view);
  if (!plan || validSpec(view)?.workspace.reclaim !== "Delete" || workspace.kind !== "present") return undefined;
  const outcome = lastUpdateIn(view)?.outputsPending ? unchanged : plan.outcome;
  if (view.otherUpdate !== undefined) return wait(outcome, now + workspaceInUseMs);
  return { ...plan, steps: [{ kind: "deleteWorkspace", uid: workspace.object.metadata.uid ?? "" }], outcome };
}

export function outputsPending(view: StackView): StackPlan | undefined {
  const plan = noUpdateDue(view);
  const last = lastUpdateIn(view);
  if (!plan || !last?.outputsPending) return undefined;
  if (view.outputs.kind === "read" && !view.occupiedOutputs) {
    return { ...plan, steps: [{ kind: "writeOutputs", updateName: last.name ?? "" }] };
  }
  const { outcome, requeueAt } = whyOutputsPending(view, last);
  const nextAt = Math.min(requeueAt ?? Infinity, plan.requeueAt ?? Infinity);
  return wait(outcome, Number.isFinite(nextAt) ? nextAt : undefined);
}

/** The last update succeeded, was cancelled, or is out of retries. */
export function noUpdateDue(view: StackView): StackPlan | undefined {
  const due = nextDue(view);
  if (!due || due.kind === "now" || due.kind === "retryAt") return undefined;
  const check = driftDue(view);
  const resyncAt = due.kind === "resyncAt" ? earliestStart(view, due.at) : Infinity;
  const requeueAt = Math.min(resyncAt, "at" in check ? check.at : Infinity);
  const outcome = readyOutcome(view) ?? givenUpOutcome(lastUpdateIn(view) ?? {}, due);
  return wait(outcome, Number.isFinite(requeueAt) ? requeueAt : undefined);
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

/** Why the outputs of the last update are not in the Secret that other Stacks read. */
export function whyOutputsPending(view: StackView, last: LastUpdate): Pick<StackPlan, "outcome" | "requeueAt"> {
  const { occupiedOutputs } = view;
  if (!occupiedOutputs) return lostOutputs(view, last.name ?? "");
  return blockedBy(view, occupiedOutputs, (conflict) => messages.outputsNotWritten(last.name ?? "", conflict));
}

type UpToDate = Extract<Outcome, { kind: "upToDate" }>;

export function upToDateOutcome(view: StackView, last: LastUpdate, nextAt: number | undefined): UpToDate {
  const { workspace, source } = view;
  const skipped = skippedCommit(view);
  const isReady = workspace.kind === "present" && workspace.state.kind === "ready";
  const warnings = [isReady && workspace.state.warning, source.kind === "ready" && source.warning, last.warning];
  return {
    kind: "upToDate",
    message: messages.upToDate(
      last,
      warnings.flatMap((warning) => warning || []),
      skipped,
    ),
    ...(nextAt !== undefined && { nextAt }),
  };
}

/** Failures in a row after which the Stack is Stalled. It is still retried. */
const stalledAfter = 3;

export function failedOutcome(view: StackView, last: LastUpdate): Outcome {
  const spec = validSpec(view);
  const due = nextDue(afterResult(view, last));
  if (due?.kind === "exhausted") return exhaustedOutcome(last, due);
  const retryAt = earliestStart(view, spec ? retryTime(view, last, spec) : view.now);
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
