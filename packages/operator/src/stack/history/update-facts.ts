/** An Update as its Stack sees it. */
import { stackFinalizer, type Update, type UpdateSpec, type UpdateStalledReason, type UpdateStatus } from "@pko/api";

import { findCondition, isConditionTrue } from "../../shared/objects/conditions.ts";
import { mayHaveLeftLock } from "../../shared/left-lock.ts";
import { parseTimestamp } from "../../shared/parse-timestamp.ts";
import { pendingOperationsMessage } from "../../shared/pending-operations.ts";
import { truncate } from "../../shared/truncate.ts";
import { endTimeOf } from "../../shared/updates.ts";
import { conflictFailure, withdrawnFailure, type UpdateFacts } from "../view.ts";
import { noPlan, notPlanned } from "../messages.ts";
import { parseTrigger, triggerAnnotation } from "./trigger.ts";

export function updateFacts(update: Update): UpdateFacts {
  const { metadata, status } = update;
  const { finalizers = [], resourceVersion = "", name = "", uid = "" } = metadata;
  const state = updateState(update);
  const trigger = parseTrigger(metadata.annotations?.[triggerAnnotation]);
  const stall = stallOf(update);
  return {
    name,
    uid,
    deleting: metadata.deletionTimestamp !== undefined,
    ...updateOperation(update.spec ?? {}),
    state,
    hasFinalizer: finalizers.includes(stackFinalizer),
    finalizers,
    resourceVersion,
    ...updateTimes(update),
    mayHaveLeftLock: mayHaveLeftLock(update),
    ...(trigger && { trigger }),
    ...(stall && { stall }),
    ...(state === "failed" && updateFailure(update)),
    ...(state === "succeeded" && updateWarning(update)),
    ...updateReport(status ?? {}),
    ...updatePlan(update),
  };
}

function updatePlan({ spec, status }: Update): Pick<UpdateFacts, "isPlan" | "plan" | "appliesPlan"> {
  return {
    isPlan: spec?.savePlan ?? false,
    ...(status?.plan && { plan: status.plan }),
    ...(spec?.applyPlan && { appliesPlan: spec.applyPlan.updateName }),
  };
}

function updateOperation({ type = "up", previewOnly = false, refresh = false }: UpdateSpec) {
  return { type, isDriftCheck: type === "refresh" && previewOnly, refreshes: type === "up" && refresh };
}

function updateState(update: Update): UpdateFacts["state"] {
  if (isConditionTrue(update, "Failed")) return "failed";
  if (!isConditionTrue(update, "Complete")) return "unfinished";
  return isPlanMissing(update) ? "failed" : "succeeded";
}

const isPlanMissing = ({ spec, status }: Update): boolean => spec?.savePlan === true && !status?.plan;

function stallOf(update: Update): UpdateFacts["stall"] {
  const condition = isConditionTrue(update, "Stalled") ? findCondition(update, "Stalled") : undefined;
  const notStopped: UpdateStalledReason = "NotStopped";
  const reason = condition?.reason === notStopped ? "UpdateNotStopped" : "NodeLost";
  return condition && { reason, message: condition.message };
}

function updateWarning({ status }: Update): Pick<UpdateFacts, "warning"> {
  const { pendingOperations: pending = [] } = status ?? {};
  return pending.length > 0 ? { warning: pendingOperationsMessage(pending) } : {};
}

function updateTimes(update: Update) {
  const startedAt = parseTimestamp(update.status?.startTime);
  const endedAt = parseTimestamp(endTimeOf(update));
  return {
    createdAt: parseTimestamp(update.metadata.creationTimestamp) ?? 0,
    ...(startedAt !== undefined && { startedAt }),
    ...(endedAt !== undefined && { endedAt }),
  };
}

type Report = Pick<UpdateFacts, "permalink" | "projectInfo" | "outputs" | "drift" | "report">;

function updateReport(status: UpdateStatus): Report {
  const { permalink, projectInfo, outputs, drift, changes, summary, stdout } = status;
  return {
    ...(permalink && { permalink }),
    ...(projectInfo && { projectInfo }),
    ...(outputs && { outputs }),
    ...(drift && { drift }),
    report: { ...(changes && { changes }), ...(summary !== undefined && { summary }), ...(stdout && { stdout }) },
  };
}

const longestMessage = 4096;

function updateFailure(update: Update): Pick<UpdateFacts, "failure" | "message"> {
  const failed = isConditionTrue(update, "Failed") ? findCondition(update, "Failed")?.message : undefined;
  const reported = update.status?.message || failed || (isPlanMissing(update) ? noPlan : "the update failed");
  const message = update.spec?.savePlan ? notPlanned(reported) : reported;
  const failure = failureClass(update, message);
  return {
    message: truncate(message, longestMessage),
    ...(failure && { failure }),
  };
}

const conflictPattern = /\[409\]|another update is currently in progress|the stack is currently locked/i;

/** As the Update reports it. An Update of the Go operator has no class; its message may show one. */
function failureClass(update: Update, message: string): string | undefined {
  const { errorClass } = update.status ?? {};
  if (errorClass) return errorClass;
  if (conflictPattern.test(message)) return conflictFailure;
  const { reason } = findCondition(update, "Failed") ?? {};
  if (reason === "Canceled" && !update.status?.startTime) return withdrawnFailure;
  return reason === "Aborted" ? "interrupted" : undefined;
}
