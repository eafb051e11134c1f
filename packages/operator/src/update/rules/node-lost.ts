/** When the node of a run counts as lost (docs/adr/0015-locks-and-lost-nodes.md). */
import { lostNodeAt } from "../../shared/pods/lost-node.ts";
import { isConditionTrue } from "../../shared/objects/conditions.ts";
import * as messages from "../messages.ts";
import type { Outcome } from "../outcome.ts";
import type { UpdateView } from "../view.ts";

/** The agent does not respond, and the pod has been overdue for too long. */
export function nodeLost({ pod, run, update, now, lostNodeAfterMs }: UpdateView): Outcome | undefined {
  // A new leader has not contacted the agent yet: the condition stays until it has.
  const isUnreachable =
    run?.state === "unreachable" || (run?.state !== "running" && isConditionTrue(update, "Stalled"));
  if (!pod?.overdue || !isUnreachable || now < lostNodeAt(pod.overdue, lostNodeAfterMs)) return undefined;
  return { kind: "stalled", reason: "NodeLost", message: messages.nodeLost(pod.overdue) };
}
