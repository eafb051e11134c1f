/** When a Workspace is scaled to zero because nothing needs its pod. Pure. */
import { keyOf } from "@pko/kube";

import { clockSkewMs } from "../../shared/parse-timestamp.ts";
import { isRetryScheduled } from "../prepare/retry.ts";
import { hasWork, idleSince, isFailed, isPrepared, wokenUntil, type WorkspaceView } from "../view.ts";
import { leastIdleMs } from "./preemption.ts";

/** Undefined for a workspace that keeps its pod. */
export function idlesAt(view: WorkspaceView): number | undefined {
  const { workspace, updates, idleTimeoutMs, inputs } = view;
  if (!(isPrepared(workspace) || isWaitingForRetry(view)) || hasWork(updates)) return undefined;
  if (idleTimeoutMs === 0 || inputs?.ephemeralState) return undefined;
  const isPreempted = view.preemptions.victims.has(keyOf(workspace));
  const timeoutMs = isPreempted ? Math.min(leastIdleMs, idleTimeoutMs) : idleTimeoutMs;
  // A later time was recorded while the clock was wrong: the pod must not stay until then.
  const since = idleSince(workspace, updates, view.now + (isPreempted ? clockSkewMs : timeoutMs));
  return Math.max(since + timeoutMs, wokenUntil(view) ?? 0);
}

/** Its preparation failed, and no attempt is in progress or due. Its inputs show that no state is lost with the pod. */
function isWaitingForRetry(view: WorkspaceView): boolean {
  return isFailed(view.workspace) && view.inputs?.pod.ok === true && isRetryScheduled(view);
}
