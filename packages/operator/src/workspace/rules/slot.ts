/** Rules about slots: a pod is created or woken only with one, so that not too many are at the same time. */
import type { Workspace } from "@pko/api";

import { isConditionTrue } from "../../shared/objects/conditions.ts";
import { parseTimestamp } from "../../shared/parse-timestamp.ts";
import * as messages from "../messages.ts";
import type { WorkspacePlan } from "../steps.ts";
import { isFailed, isObserved, readyCondition, wokenUntil, type WorkspaceView } from "../view.ts";
import { decide, type WorkspaceRule } from "./decision.ts";
import { objectsToApply } from "./objects.ts";

/** Its Stack or Update usually has a slot. A person who needs the pod does not wait. */
export const slotMissing: WorkspaceRule = (view) => {
  const { slot, statefulSet, pod, now } = view;
  const isCreated = pod !== undefined || (statefulSet?.replicas ?? 0) > 0;
  if (isCreated || slot.kind === "held" || !objectsToApply(view) || wokenUntil(view) !== undefined) return undefined;
  if (slot.kind === "none") {
    return decide({ kind: "unchanged" }, undefined, [{ kind: "claimSlot", since: waitingSince(view) }]);
  }
  return decide({ kind: "waitingForSlot", message: messages.waitingForSlot(slot) }, slot.refreshAt - now);
};

/** After a restart, the Workspace keeps its place. */
function waitingSince({ workspace, now }: WorkspaceView): number {
  const ready = readyCondition(workspace);
  return (ready?.reason === "WaitingForSlot" ? parseTimestamp(ready.lastTransitionTime) : undefined) ?? now;
}

/** A pod that has not started by then may never start. */
const podStartMs = 5 * 60_000;

const isHeldForLong = ({ slot }: WorkspaceView): boolean => slot.kind === "held" && slot.forMs >= podStartMs;

/** Then the slot may already be for the spec that fixes the failure: the Stack takes it before it applies that spec. */
const isFailureReported = (workspace: Workspace): boolean =>
  isFailed(workspace) || (isObserved(workspace) && isConditionTrue(workspace, "Stalled"));

/** What becomes of the slot after a plan. "ended": the Workspace itself no longer needs it, but an Update may. */
export function slotUse(view: WorkspaceView, { outcome }: WorkspacePlan): "kept" | "ended" | "givenUp" {
  switch (outcome.kind) {
    case "ready":
    case "idle":
      return view.updates.some(({ phase }) => phase === "waiting") ? "kept" : "ended";
    case "deleting":
      return "givenUp";
    case "misconfigured":
    case "blocked":
    case "failed":
    case "nodeLost":
      return isFailureReported(view.workspace) && !isHeldForLong(view) ? "ended" : "givenUp";
    case "waiting":
    case "rolling":
    case "unreachable":
      return isHeldForLong(view) ? "givenUp" : "kept";
    case "waitingForSlot":
    case "waitingForRun":
    case "preparing":
    case "unchanged":
      return "kept";
  }
}
