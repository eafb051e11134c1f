/** Updates that are deleted before they are complete. */
import * as messages from "../messages.ts";
import type { UpdatePlan } from "../steps.ts";
import { hasStarted, isDeleting, runIdOf, type UpdateView } from "../view.ts";
import { endedWithoutResult } from "./ended.ts";
import { nodeLost } from "./node-lost.ts";
import { parseTimestamp } from "../../shared/parse-timestamp.ts";

export function deletedBeforeStart(view: UpdateView): UpdatePlan | undefined {
  if (!isDeleting(view) || hasStarted(view)) return undefined;
  return endedWithoutResult(view, { reason: "Canceled", message: messages.deletedBeforeStart });
}

/** The agent kills an operation that does not stop within nine minutes. */
const giveUpMs = 15 * 60_000;

export function deletedWhileRunning(view: UpdateView): UpdatePlan | undefined {
  const { update, pod, now } = view;
  if (!isDeleting(view) || !hasStarted(view) || !pod) return undefined;
  const giveUpAt = (parseTimestamp(update.metadata.deletionTimestamp) ?? now) + giveUpMs;
  if (giveUpAt <= now) return endedWithoutResult(view, { reason: "Unknown", message: messages.notConfirmed });
  return {
    steps: [{ kind: "cancelRun", pod: pod.agent, runId: runIdOf(view) }],
    outcome: nodeLost(view) ?? { kind: "progressing", reason: "Progressing", message: messages.cancelling },
    requeueAt: giveUpAt,
  };
}
