/** Runs that are over, with or without a result. */
import type { RunResult } from "@pko/rpc";

import type { Run } from "../../agents/agents.ts";
import { findCondition, isConditionTrue } from "../../shared/objects/conditions.ts";
import * as messages from "../messages.ts";
import type { Ending } from "../outcome.ts";
import type { UpdatePlan } from "../steps.ts";
import { hasStarted, isDeleting, type UpdateView } from "../view.ts";
import { endedWithoutResult, endedWithResult } from "./ended.ts";

/**
 * The Go operator records no pod, and no time before the end: only the condition Progressing. It does not follow a run after
 * its restart, so no operator does.
 */
export function startedByOtherOperator(view: UpdateView): UpdatePlan | undefined {
  const { update } = view;
  if (hasStarted(view)) return undefined;
  const progressing = isConditionTrue(update, "Progressing") ? findCondition(update, "Progressing") : undefined;
  const since = update.status?.startTime ?? progressing?.lastTransitionTime;
  if (since === undefined) return undefined;
  return endedWithoutResult(view, { reason: "Aborted", message: messages.startedByOtherOperator(since) });
}

export function runFinished(view: UpdateView): UpdatePlan | undefined {
  const { run, update } = view;
  if (run?.state !== "finished") return undefined;
  const { result } = run;
  const problem = planProblem(view, run);
  if (problem !== undefined) {
    const message = messages.planNotKept(update.spec?.type ?? result.operation, problem);
    return endedWithResult(view, { reason: "UpdateFailed", message, result }, run);
  }
  const message = messages.runEnded(update.spec?.type ?? result.operation, result);
  return endedWithResult(view, { reason: endReason(result), message, result }, run);
}

function endReason({ outcome, error }: RunResult): Ending["reason"] {
  return error?.class === "timedOut" ? "TimedOut" : endReasons[outcome];
}

/** Why a run that was to make a plan, and has succeeded, is useless: without its plan nothing can be approved. */
function planProblem(
  { update, planFailure }: UpdateView,
  { result, plan, planProblem: unread }: Extract<Run, { state: "finished" }>,
): string | undefined {
  if (update.spec?.savePlan !== true || result.outcome !== "succeeded") return undefined;
  return planFailure ?? unread ?? (result.plan && plan ? undefined : messages.planNotReported);
}

const endReasons: Readonly<Record<RunResult["outcome"], Ending["reason"]>> = {
  succeeded: "UpdateSucceeded",
  failed: "UpdateFailed",
  cancelled: "Canceled",
  interrupted: "Aborted",
};

export function runRejected(view: UpdateView): UpdatePlan | undefined {
  const { run } = view;
  if (run?.state !== "refused") return undefined;
  switch (run.code) {
    case "other":
      return endedWithoutResult(view, { reason: "UpdateFailed", message: messages.rejectedByWorkspace(run.message) });
    case "notFound":
      return isDeleting(view)
        ? endedWithoutResult(view, { reason: "Canceled", message: messages.deletedBeforeStart })
        : endedWithoutResult(view, { reason: "Aborted", message: messages.unknownToWorkspace(run.message) });
    case "busy":
    case "unprepared":
      return undefined;
  }
}

export function podDeleted(view: UpdateView): UpdatePlan | undefined {
  const { update, pod } = view;
  const podUid = update.status?.podUid;
  if (podUid === undefined || pod?.agent.uid === podUid) return undefined;
  return endedWithoutResult(view, { reason: "Aborted", message: messages.podDeleted }, { kind: "confirmPodDeleted" });
}
