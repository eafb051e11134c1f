/** Rules for a Workspace that needs no pod. */
import { idlesAt } from "../idle/timeout.ts";
import { retryWhileBackedOff } from "../prepare/retry.ts";
import type { Step } from "../steps.ts";
import { isBackedOff, isFailed, isIdle } from "../view.ts";
import { decide, intervals, type WorkspaceRule } from "./decision.ts";

export const idle: WorkspaceRule = (view) => {
  // Requeued to check that the pod terminates.
  const afterMs = view.pod ? intervals.terminating : undefined;
  return isIdle(view) ? decide({ kind: "idle" }, afterMs, [{ kind: "forgetPreparation" }]) : undefined;
};

export const backedOff: WorkspaceRule = (view) => {
  if (!isBackedOff(view)) return undefined;
  const retryAfterMs = retryWhileBackedOff(view).at - view.now;
  return decide({ kind: "unchanged" }, view.pod ? intervals.terminating : retryAfterMs, [
    { kind: "forgetPreparation" },
  ]);
};

export const idleTimeoutReached: WorkspaceRule = (view) => {
  const { statefulSet, workspace } = view;
  if (!statefulSet || (idlesAt(view) ?? Infinity) > view.now) return undefined;
  const { uid } = statefulSet;
  if (isFailed(workspace)) {
    const backedOffGeneration = workspace.metadata.generation ?? 0;
    const steps: Step[] = [{ kind: "scaleToZero", uid, backedOffGeneration }, { kind: "forgetPreparation" }];
    return decide({ kind: "unchanged" }, intervals.settle, steps);
  }
  // The status loses its address before the StatefulSet is scaled to zero: an Update may be about to start.
  if (workspace.status?.address !== undefined) return decide({ kind: "idle" }, intervals.settle);
  return decide({ kind: "idle" }, undefined, [{ kind: "scaleToZero", uid }, { kind: "forgetPreparation" }]);
};
