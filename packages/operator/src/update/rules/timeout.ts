/** Operations that their agent should have stopped, because they exceeded their timeout. */
import { parseTimestamp } from "../../shared/parse-timestamp.ts";
import { podNameOf } from "../../shared/pods/workspace-pod.ts";
import * as messages from "../messages.ts";
import type { UpdatePlan } from "../steps.ts";
import { hasStarted, type UpdateView } from "../view.ts";
import { nodeLost } from "./node-lost.ts";

/** The agent kills an operation that does not stop within nine minutes, and needs a little time to report it. */
const stopMs = 15 * 60_000;

/** When the end of the operation is overdue; Infinity without a timeout. */
export function endOverdueAt({ update, spec }: UpdateView): number {
  const startedAt = parseTimestamp(update.status?.startTime);
  const seconds = spec.ok ? spec.value.timeouts.totalSeconds : undefined;
  return startedAt === undefined || seconds === undefined ? Infinity : startedAt + seconds * 1000 + stopMs;
}

/** Only the end of its pod proves that the operation has ended: until then, it is only reported. */
export function notStopped(view: UpdateView): UpdatePlan | undefined {
  const { run, spec, now, pod } = view;
  if (!hasStarted(view) || !pod || !spec.ok || now < endOverdueAt(view)) return undefined;
  // An operation that was refused does not run.
  if (!run || run.state === "refused" || run.state === "finished") return undefined;
  const { workspaceName, namespace, timeouts } = spec.value;
  const message = messages.notStopped({
    pod: podNameOf(workspaceName),
    namespace,
    seconds: timeouts.totalSeconds ?? 0,
  });
  return { steps: [], outcome: nodeLost(view) ?? { kind: "stalled", reason: "NotStopped", message } };
}
