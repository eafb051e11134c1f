/** Rules for a pod whose node does not respond, or which does not terminate. */
import { lostNodeAt, lostNodeMessage } from "../../shared/pods/lost-node.ts";
import * as messages from "../messages.ts";
import type { Outcome } from "../outcome.ts";
import { isBackedOff, isIdle, runningUpdate, type WorkspaceView } from "../view.ts";
import { decide, intervals, problemPause, type WorkspaceRule } from "./decision.ts";

/** The StatefulSet creates no other pod before this one is deleted. If an Update runs in it, the Update reports this. */
export const nodeLost: WorkspaceRule = (view) => {
  const { pod, now, lostNodeAfterMs } = view;
  if (!pod?.overdue || runningUpdate(view) || isIdle(view) || isBackedOff(view)) return undefined;
  if (now < lostNodeAt(pod.overdue, lostNodeAfterMs)) return undefined;
  const message = lostNodeMessage(pod.overdue, messages.noOtherPod);
  return decide({ kind: "nodeLost", message }, problemPause(view));
};

/** The grace period is for runs. An agent that ignores its termination would occupy its node for all of it. */
export const terminatingTooLong: WorkspaceRule = (view) => {
  const { pod, now } = view;
  if (pod?.terminatingSince === undefined || runningUpdate(view)) return undefined;
  if (now - pod.terminatingSince < intervals.terminating) return undefined;
  return decide(whileTerminating(view, pod.explanation.message), intervals.terminating, [
    { kind: "deletePod", uid: pod.agent.uid, graceSeconds: 5 },
  ]);
};

/** The failure that it backs off from stays in the status: without it, the next attempt would not wait for its time. */
function whileTerminating(view: WorkspaceView, message: string): Outcome {
  if (isBackedOff(view)) return { kind: "unchanged" };
  return isIdle(view) ? { kind: "idle" } : { kind: "rolling", message };
}
