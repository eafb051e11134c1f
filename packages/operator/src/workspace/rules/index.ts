/**
 * What to do next about a Workspace: the complete list of rules, of which the first that applies decides. Pure.
 *
 *            ┌──────────────────── a new template, or what the pod reads has changed ─────────────────┐
 *            ▼                                                                                        │
 *   new ──▶ waiting ──▶ preparing ──▶ ready ──────────────────────────────────────────────────────────┤
 *            ▲           ▲  │           │ ▲                                                           │
 *            │   retry   │  ▼           │ │ a new commit or configuration: prepared in the same pod   │
 *            │          failed          │ └───────────────────────────────────────────────────────────┤
 *            │                          ▼ idle for its timeout, or pods elsewhere are unschedulable   │
 *            └──── an Update waits ─── idle                                                           │
 *                  or the spec changed                                                                │
 *                                     an Update runs in the pod: all of this waits until it ends ─────┘
 *
 * An idle workspace is ready, but scaled to zero: an Update wakes it, and so does a person (pulumi.com/wake-until). An
 * Update can only start with an address.
 * A workspace whose preparation keeps failing is backed off after the idle timeout: scaled to zero between attempts. Its status
 * shows the failure until an attempt succeeds, or fails in another way.
 *
 * Rules that read something, or check or renew what the objects need, come before the rules that depend on it: the plan is
 * made again with what their steps find out. Every plan is also requeued when the pod's node counts as lost (`planOf`), and
 * decides which Updates may start (`clearedUpdates`).
 */
import { firstDecision } from "@pko/kube";

import type { WorkspacePlan } from "../steps.ts";
import type { WorkspaceView } from "../view.ts";
import { planOf, type WorkspaceRule } from "./decision.ts";
import { cacheClaimMissing, classConflict, classUnknown } from "./workspace-class.ts";
import { backedOff, idle, idleTimeoutReached } from "./idle.ts";
import { certificateMissing, inputsUnread, namesUnchecked, podCertificateInvalid } from "./inputs.ts";
import { nodeLost, terminatingTooLong } from "./node.ts";
import { aboutToReplacePod, objectsDiffer, statefulSetChanged, statefulSetNotObserved } from "./objects.ts";
import { nameTaken } from "./ownership.ts";
import { outdatedPodStuck, podMissing, podNotUp, podOutdated, podStarting } from "./pod.ts";
import { prepare } from "./preparation.ts";
import { updateRunning, updateUnprepared } from "./running.ts";
import { podNeverStarted, slotMissing } from "./slot.ts";
import {
  deleted,
  referencesMissing,
  rejectedByApiServer,
  sourceUnavailable,
  specInvalid,
  templateInvalid,
} from "./spec.ts";

const rules: readonly WorkspaceRule[] = [
  deleted, //                the Workspace is being deleted
  nameTaken, //              a step found that an object of another owner has a name that is needed
  rejectedByApiServer, //    a step found that the API server rejects an object
  podCertificateInvalid, //  the certificate of the pod is not valid: reissue it, whatever else is decided
  specInvalid, //            the spec is invalid
  nodeLost, //               the pod's node may be lost: a person must confirm it
  terminatingTooLong, //     the pod does not terminate, and nothing runs in it: shorten its grace period
  updateRunning, //          an Update runs in the pod: every change waits
  idle, //                   ready and scaled to zero
  backedOff, //              the preparation failed: scaled to zero until the next attempt
  classUnknown, //           the labels of the namespace are not known yet, and so is its WorkspaceClass
  classConflict, //          more than one WorkspaceClass selects the namespace
  inputsUnread, //           read the Secrets, ConfigMaps and the Program from which the objects and the request are built
  updateUnprepared, //       the agent cannot start the Update in the pod: only prepare it
  idleTimeoutReached, //     nothing has needed the pod for the idle timeout: scale to zero
  templateInvalid, //        the pod or the Service cannot be built from the templates
  sourceUnavailable, //      the request to the agent lacks a Program, a Secret or a token
  referencesMissing, //      the pod reads a Secret or ConfigMap that does not exist
  aboutToReplacePod, //      the pod must be replaced, and an Update waits: report it first
  slotMissing, //            there is no pod, and as many updates as allowed are running: wait, before anything is created
  namesUnchecked, //         the objects must be applied: check that no other owner has their names
  cacheClaimMissing, //      the objects must be applied, or no node takes the pod, and the class has caches: create their claim
  certificateMissing, //     there is no pod yet, and its certificate is not valid: issue it
  objectsDiffer, //          the StatefulSet and the Service are not as they should be: apply them
  statefulSetChanged, //     another client changed the StatefulSet, or may have before this process wrote it: apply it again
  statefulSetNotObserved, // the StatefulSet's controller has not observed the latest template
  podNeverStarted, //        the pod has not started for five minutes, and others wait for its slot: scale to zero
  outdatedPodStuck, //       a broken pod of an old template is in the way: delete it
  podMissing, //             the StatefulSet's controller has not created the pod
  podOutdated, //            a pod of an old template is up: its StatefulSet replaces it
  podStarting, //            the agent is about to listen: contact it already
  podNotUp, //               the pod is pending, broken or terminating
  prepare, //                the pod is up: have its agent prepare the workspace
];

export const planWorkspace = (view: WorkspaceView): WorkspacePlan => planOf(view, firstDecision(rules, view));
