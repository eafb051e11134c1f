/** Rules for the StatefulSet and the Service: they must be as they were built from the spec. */
import type { WorkspaceReason } from "@pko/api";

import * as messages from "../messages.ts";
import type { Outcome } from "../outcome.ts";
import type { BuiltObjects } from "../pod/build-objects.ts";
import { hasWork, msSinceTransition, readyCondition, type WorkspaceView } from "../view.ts";
import { decide, intervals, missingPause, type WorkspaceRule } from "./decision.ts";

/** Those that are not as they should be; undefined where the current ones are up to date. */
function dueObjects({ inputs, statefulSet, pod }: WorkspaceView): BuiltObjects | undefined {
  if (!inputs?.pod.ok || (inputs.missing.length > 0 && pod?.isUp)) return undefined;
  const { objects } = inputs.pod;
  return statefulSet?.builtHash === objects.hash && statefulSet.replicas === 1 ? undefined : objects;
}

/** Undefined also while a former StatefulSet is being deleted. */
export const objectsToApply = (view: WorkspaceView): BuiltObjects | undefined =>
  view.statefulSet?.isDeleting ? undefined : dueObjects(view);

/** The status reports that it is not ready before the pod is replaced: a waiting Update may be about to start in it. */
export const aboutToReplacePod: WorkspaceRule = (view) => {
  const { workspace, updates, pod } = view;
  if (!dueObjects(view) || !pod?.isUp || pod.isDeleting || !hasWork(updates)) return undefined;
  const isReported = readyCondition(workspace)?.status === "False" && msSinceTransition(view) >= intervals.settle;
  if (isReported && workspace.status?.address === undefined) return undefined;
  return decide({ kind: "rolling", message: messages.podAboutToBeReplaced }, intervals.settle);
};

export const objectsDiffer: WorkspaceRule = (view) => {
  const objects = dueObjects(view);
  if (!objects) return undefined;
  if (view.statefulSet?.isDeleting) {
    return decide({ kind: "waiting", message: messages.formerStatefulSet, isStuck: false }, missingPause(view));
  }
  const outcome: Outcome =
    view.pod && !view.pod.isDeleting ? { kind: "rolling", message: messages.templateChanged } : podBeingCreated;
  return decide(outcome, intervals.safety, [{ kind: "applyObjects", objects }]);
};

/** Another client has changed the StatefulSet, or may have while no operator ran: our fields are applied again. */
export const statefulSetChanged: WorkspaceRule = (view) => {
  const { inputs, statefulSet, pod, workspace } = view;
  if (!inputs?.pod.ok || !statefulSet || statefulSet.isDeleting) return undefined;
  if (statefulSet.generation <= writtenGeneration(view) || (inputs.missing.length > 0 && pod?.isUp)) return undefined;
  const outcome: Outcome = workspace.status ? { kind: "unchanged" } : podBeingCreated;
  const { objects } = inputs.pod;
  return decide(outcome, 0, [{ kind: "restoreStatefulSet", uid: statefulSet.uid, objects }]);
};

function writtenGeneration({ written, statefulSet }: WorkspaceView): number {
  return written && written.uid === statefulSet?.uid ? written.generation : 0;
}

/** Until its controller has observed the StatefulSet, it is unknown whether the pod stays. */
export const statefulSetNotObserved: WorkspaceRule = ({ workspace, statefulSet, pod }) => {
  if (!statefulSet || statefulSet.updateRevision !== undefined || !pod || pod.isDeleting) return undefined;
  // The first pod may be observed before the status of its StatefulSet.
  const isFirst = readyCondition(workspace)?.reason === ("WaitingForReplicas" satisfies WorkspaceReason);
  const outcome: Outcome = isFirst ? podBeingCreated : { kind: "rolling", message: messages.podBeingReplaced };
  return decide(outcome, intervals.safety);
};

export const podBeingCreated: Outcome = { kind: "waiting", message: messages.podBeingCreated, isStuck: false };
