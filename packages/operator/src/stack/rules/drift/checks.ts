/** Rules about drift checks. Nothing is wrong while one runs, so the Stack stays Ready. */
import { firstDecision } from "@pko/kube";

import { checkRecord, driftRequestOf, failedCheck, isDriftShown, unrecordedChecks } from "../../history/drift.ts";
import { isCancelled } from "../../history/trigger.ts";
import * as messages from "../../messages.ts";
import { processing, type Outcome } from "../../outcome.ts";
import { unchanged, wait, type StackPlan } from "../../steps.ts";
import {
  hasFinalizer,
  isDeleting,
  lastUpdateIn,
  presentStatus,
  suspendedBy,
  unfinishedUpdate,
  type StackView,
  type UpdateFacts,
} from "../../view.ts";
import { driftDue } from "./due.ts";
import { nextDue } from "../due.ts";
import { readyOutcome } from "../no-update-due.ts";
import { workspaceRules } from "../workspace.ts";

/** The API server rejected a write for a check, or another owner's object has a name that it needs. */
export function driftCheckRejected(view: StackView): StackPlan | undefined {
  const { rejection, occupied } = view;
  if ((!rejection && !occupied) || !hasFinalizer(view) || driftDue(view).kind !== "now") return undefined;
  return notStarted(view, rejection ? messages.rejection(rejection) : messages.nameTaken);
}

/** Their result is in the status, or is not needed. Those are deleted, because a later check may need the name. */
export function driftChecksRecorded(view: StackView): StackPlan | undefined {
  const recorded = presentStatus(view).drift?.updateName;
  const finished = view.updates.filter(
    ({ isDriftCheck, state, hasFinalizer: isKept }) => isDriftCheck && state !== "unfinished" && isKept,
  );
  const obsolete = finished.filter((update) => update.name !== recorded && isObsolete(view, update));
  const [deletable] = isDeleting(view) ? [] : obsolete.filter(({ deleting }) => !deleting);
  if (deletable) {
    const { name, uid } = deletable;
    return { steps: [{ kind: "withdrawUpdate", name, uid }], outcome: unchanged };
  }
  const updates = finished.filter((update) => update.name === recorded || obsolete.includes(update));
  return updates.length === 0
    ? undefined
    : { steps: [{ kind: "removeUpdateFinalizers", updates }], outcome: unchanged };
}

function isObsolete(view: StackView, { deleting, state }: UpdateFacts): boolean {
  // The status was lost, or nobody wants the result any longer.
  if (isDeleting(view) || !lastUpdateIn(view) || !isDriftShown(view)) return true;
  return deleting && state === "failed" && obstacleTo(view) !== undefined;
}

export function driftUnrecorded(view: StackView): StackPlan | undefined {
  const [check] = unrecordedChecks(view);
  if (!check) return undefined;
  return { steps: [{ kind: "recordDrift", record: checkRecord(view, check) }], outcome: outcomeMeanwhile(view) };
}

export function driftCheckRunning(view: StackView): StackPlan | undefined {
  const check = unfinishedUpdate(view);
  // A person has to act if its node is lost, as for any Update.
  if (!check?.isDriftCheck || check.stall !== undefined) return undefined;
  const obstacle = obstacleTo(view);
  const outcome = obstacle
    ? processing(messages.stoppingCheck(check.name, obstacle), messages.endOfUpdate(check.name))
    : outcomeMeanwhile(view);
  if (check.deleting || (!obstacle && !isStopped(view, check))) return wait(outcome);
  const { name, uid } = check;
  return { steps: [{ kind: "withdrawUpdate", name, uid }], outcome };
}

/** A user has cancelled it; or it has not started, and the Stack is suspended or its Workspace may never be ready. */
function isStopped(view: StackView, { name, startedAt }: UpdateFacts): boolean {
  const { stack, workspace } = view;
  if (isCancelled(stack, name)) return true;
  if (startedAt !== undefined) return false;
  return suspendedBy(view).length > 0 || workspace.kind !== "present" || workspace.state.kind === "failed";
}

/** Why a check must not delay what comes next. */
function obstacleTo(view: StackView): string | undefined {
  const { stackDeleted, specInvalid, updateDue } = messages.checkObstacles;
  if (isDeleting(view)) return stackDeleted;
  if (!view.spec.ok) return specInvalid;
  return nextDue(view)?.kind === "now" ? updateDue : undefined;
}

/** As if there were no check. */
const outcomeMeanwhile = (view: StackView): Outcome => readyOutcome(view) ?? unchanged;

/** As for an update, except that it does not wait for other Stacks. */
export function driftCheckDue(view: StackView): StackPlan | undefined {
  if (driftDue(view).kind !== "now") return undefined;
  const plan = firstDecision(workspaceRules, view);
  const { outcome } = plan;
  if (outcome.kind === "stalled") return notStarted(view, outcome.message);
  return outcome.kind === "unchanged" ? plan : { ...plan, outcome: outcomeMeanwhile(view) };
}

function notStarted(view: StackView, message: string): StackPlan {
  const record = failedCheck(view, { request: driftRequestOf(view.stack), message });
  return { steps: [{ kind: "recordDrift", record }], outcome: outcomeMeanwhile(view) };
}
