/** Updates that are deleted before they are complete. */
import * as messages from "../messages.ts";
import type { Step, UpdatePlan } from "../steps.ts";
import { hasStarted, isDeleting, runIdOf, type UpdateView } from "../view.ts";
import { endedWithoutResult } from "./ended.ts";
import { nodeLost } from "./node-lost.ts";
import { parseTimestamp } from "../../shared/parse-timestamp.ts";

const releaseApproval: Step = { kind: "releaseApproval" };

/**
 * An operator that was interrupted between the use of the Approval and the record of the pod has started nothing, and no
 * other can: the API server rejects a record that is based on the Update as it was before its deletion.
 */
export function deletedBeforeStart(view: UpdateView): UpdatePlan | undefined {
  if (!isDeleting(view) || hasStarted(view)) return undefined;
  const ending = { reason: "Canceled", message: messages.deletedBeforeStart } as const;
  return endedWithoutResult(view, ending, ...(view.update.spec?.applyPlan ? [releaseApproval] : []));
}

/** The agent kills an operation that does not stop within nine minutes. */
const giveUpMs = 15 * 60_000;

export function deletedWhileRunning(view: UpdateView): UpdatePlan | undefined {
  const { update, pod, run, now } = view;
  if (!isDeleting(view) || !hasStarted(view) || !pod) return undefined;
  const giveUpAt = (parseTimestamp(update.metadata.deletionTimestamp) ?? now) + giveUpMs;
  const isOverdue = giveUpAt <= now;
  // The time may have passed without an operator, or its clock may be wrong: the agent must have had a chance to respond.
  if (isOverdue && run && run.state !== "starting")
    return endedWithoutResult(view, { reason: "Unknown", message: messages.notConfirmed });
  return {
    steps: [{ kind: "cancelRun", pod: pod.agent, runId: runIdOf(view) }],
    outcome: nodeLost(view) ?? { kind: "progressing", reason: "Progressing", message: messages.cancelling },
    ...(!isOverdue && { requeueAt: giveUpAt }),
  };
}
