/** Rules for the pod: it must exist, match the current template, and be up. */
import { keyOf } from "@pko/kube";

import { ownershipConflict } from "../../shared/objects/ownership.ts";
import { findCondition } from "../../shared/objects/conditions.ts";
import * as messages from "../messages.ts";
import type { Outcome } from "../outcome.ts";
import type { Step } from "../steps.ts";
import { msWaiting, type WorkspaceView } from "../view.ts";
import {
  decide,
  explained,
  intervals,
  missingPause,
  roomPause,
  safetyPause,
  type Decision,
  type WorkspaceRule,
} from "./decision.ts";
import { podBeingCreated } from "./objects.ts";
import { blockedBy } from "./ownership.ts";
import { isAnswered, outcomeOfPreparation } from "./preparation.ts";

/** A StatefulSet may wait forever for a broken pod of an old template before it creates the one that would work. */
export const outdatedPodStuck: WorkspaceRule = (view) => {
  const { pod } = view;
  if (!pod || pod.isUp || pod.isDeleting || !isOutdated(view)) return undefined;
  const outcome: Outcome = { kind: "rolling", message: messages.brokenPodReplaced(pod.explanation.message) };
  return decide(outcome, intervals.safety, [{ kind: "deletePod", uid: pod.agent.uid }]);
};

function isOutdated({ pod, statefulSet }: WorkspaceView): boolean {
  const wanted = statefulSet?.updateRevision;
  return wanted !== undefined && pod !== undefined && pod.revision !== wanted;
}

export const podMissing: WorkspaceRule = (view) => {
  if (view.pod) return undefined;
  const { admission, statefulSet } = view;
  switch (admission?.kind) {
    case "occupied":
      return blockedBy(view, [admission.occupied]);
    case "rejected":
      return decide(
        { kind: "waiting", message: messages.podRejected(admission.message), isStuck: true },
        missingPause(view),
      );
    case "admitted":
      return decide(podBeingCreated, missingPause(view), retryCreation(view));
    case undefined: {
      // The StatefulSet's controller has had time to create it, and does not report why it has not.
      const isLate = statefulSet?.updateRevision && msWaiting(view) >= intervals.podMissing;
      return decide(podBeingCreated, missingPause(view), isLate ? [{ kind: "dryRunPod" }] : []);
    }
    case "unknown":
      return decide(podBeingCreated, missingPause(view));
  }
};

/** The StatefulSet's controller retries less and less often, and does not notice that the pod's name is free again. */
function retryCreation({ workspace, statefulSet }: WorkspaceView): Step[] {
  if (findCondition(workspace, "Stalled")?.reason !== ownershipConflict || !statefulSet) return [];
  return [{ kind: "retryPodCreation", uid: statefulSet.uid }];
}

export const podOutdated: WorkspaceRule = (view) => {
  if (!view.pod?.isUp || !isOutdated(view)) return undefined;
  return decide({ kind: "rolling", message: messages.podBeingReplaced }, intervals.safety);
};

/** The agent may have listened for a second by the time the kubelet reports that it runs: it is contacted before that. */
export const podStarting: WorkspaceRule = (view) => {
  const { pod, inputs, preparation } = view;
  if (!pod?.agent.isStarting || pod.isUp || inputs?.requested.kind !== "complete") return undefined;
  if (preparation && isAnswered(preparation)) return outcomeOfPreparation(view, preparation);
  const { request } = inputs.requested;
  const prepare: Step = { kind: "prepare", pod: pod.agent, request, retry: false };
  return decide(explained(pod), safetyPause(view), preparation ? [] : [prepare]);
};

export const podNotUp: WorkspaceRule = (view) => {
  const { pod } = view;
  if (!pod || (pod.isUp && !pod.isDeleting)) return undefined;
  return pod.isUnschedulable ? unschedulable(view, pod.explanation.message) : decide(explained(pod), safetyPause(view));
};

function unschedulable(view: WorkspaceView, explanation: string): Decision | undefined {
  const { pod, preemptions, workspace } = view;
  const victim = preemptions.victimOf.get(keyOf(workspace));
  if (victim === undefined) return pod && decide(explained(pod), pauseWithoutRoom(view));
  const outcome: Outcome = { kind: "waiting", message: messages.idlePreempted(explanation), isStuck: true };
  return decide(outcome, roomPause(view), [{ kind: "reconcileOther", key: victim }]);
}

/** The pod may have become unschedulable after the plan was made: the next plan may have room for it. */
function pauseWithoutRoom(view: WorkspaceView): number {
  const { now, preemptions, workspace } = view;
  return preemptions.planned.has(keyOf(workspace)) ? roomPause(view) : preemptions.renewedAt - now;
}
