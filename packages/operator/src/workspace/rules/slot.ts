/** Rules about slots: a pod is created or woken only with one, so that not too many are at the same time. */
import type { Workspace } from "@pko/api";

import { isConditionTrue } from "../../shared/objects/conditions.ts";
import { parseTimestamp } from "../../shared/parse-timestamp.ts";
import * as messages from "../messages.ts";
import type { Outcome } from "../outcome.ts";
import type { WorkspacePlan } from "../steps.ts";
import { isFailed, isObserved, readyCondition, wokenUntil, type WorkspaceView } from "../view.ts";
import { decide, intervals, type WorkspaceRule } from "./decision.ts";
import { objectsToApply } from "./objects.ts";

/** Its Stack or Update usually has a slot. A person who needs the pod does not wait. */
export const slotMissing: WorkspaceRule = (view) => {
  const { slot, statefulSet, pod, now } = view;
  // A StatefulSet that is scaled to zero deletes its pod.
  const isCreated = statefulSet ? statefulSet.replicas > 0 : pod !== undefined;
  if (isCreated || slot.kind === "held" || !objectsToApply(view) || wokenUntil(view) !== undefined) return undefined;
  if (slot.kind === "none") {
    return decide({ kind: "unchanged" }, undefined, [{ kind: "claimSlot", rank: rankOf(view) }]);
  }
  const { notStarted } = statefulSet ?? {};
  const message = notStarted === undefined ? messages.waitingForSlot(slot) : messages.triedAgain(notStarted, slot);
  return decide({ kind: "waitingForSlot", message }, slot.refreshAt - now);
};

/**
 * Others wait for the slot in which this pod has not started. It is deleted with the slot: otherwise, pods that never start would
 * pile up beyond the limit, while each of them returns its slot.
 */
export const podNeverStarted: WorkspaceRule = (view) => {
  const { statefulSet, pod, preparation } = view;
  if (!statefulSet || statefulSet.isDeleting || statefulSet.replicas === 0) return undefined;
  const isUp = pod?.isUp && preparation?.state !== "unreachable";
  if (isUp || !isWantedForLong(view) || wokenUntil(view) !== undefined) return undefined;
  const explanation = explanationOf(view);
  const outcome: Outcome = { kind: "waiting", message: messages.podNeverStarted(explanation), isStuck: true };
  return decide(outcome, intervals.safety, [{ kind: "scaleToZero", uid: statefulSet.uid, notStarted: explanation }]);
};

function explanationOf({ pod, preparation }: WorkspaceView): string {
  if (pod?.isUp && preparation?.state === "unreachable") return messages.agentUnreachable(preparation.message);
  return pod?.explanation.message ?? messages.podBeingCreated;
}

/** After a restart, the Workspace keeps its place. It may have been unready for other reasons before it began to wait. */
function rankOf({ workspace, now }: WorkspaceView): number {
  const ready = readyCondition(workspace);
  return (ready?.reason === "WaitingForSlot" ? parseTimestamp(ready.lastTransitionTime) : undefined) ?? now;
}

/** A pod that has not started by then may never start. */
const podStartMs = 5 * 60_000;

const isHeldForLong = ({ slot }: WorkspaceView): boolean => slot.kind === "held" && slot.forMs >= podStartMs;

const isWantedForLong = (view: WorkspaceView): boolean =>
  isHeldForLong(view) && view.slot.kind === "held" && view.slot.isWanted;

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
      return isWantedForLong(view) ? "givenUp" : "kept";
    case "waitingForSlot":
    case "waitingForRun":
    case "preparing":
    case "unchanged":
      return "kept";
  }
}
