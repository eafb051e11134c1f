/** Rules for a Workspace in whose pod an Update runs: every other change waits. */
import * as messages from "../messages.ts";
import { isServing, msSinceTransition, runningUpdate } from "../view.ts";
import { decide, explained, intervals, missingPause, type WorkspaceRule } from "./decision.ts";
import { prepare } from "./preparation.ts";
import { requestIncomplete } from "./spec.ts";

export const updateRunning: WorkspaceRule = (view) => {
  const { pod, workspace } = view;
  const run = runningUpdate(view);
  if (!run || !pod || pod.isDeleting) return undefined;
  if (!pod.isUp) {
    const remainingMs = intervals.lostRun - msSinceTransition(view);
    return remainingMs > 0 ? decide(explained(pod), Math.min(missingPause(view), remainingMs)) : undefined;
  }
  if (run.isUnprepared) return undefined;
  if (isServing(view)) return decide({ kind: "unchanged" }, intervals.safety);
  const isObserved = workspace.status?.observedGeneration === workspace.metadata.generation;
  const message = messages.waitsForUpdate(run.name, { isObserved });
  return decide({ kind: "waitingForRun", message }, intervals.safety);
};

/** It has not started, and never would. Only a preparation is safe, because the run may start at any time after it. */
export const updateUnprepared: WorkspaceRule = (view) => {
  const { pod } = view;
  if (!runningUpdate(view)?.isUnprepared || !pod?.isUp || pod.isDeleting) return undefined;
  return requestIncomplete(view) ?? prepare(view);
};
