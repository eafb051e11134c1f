/**
 * What to do next about an Update. Pure.
 *
 *   created ──▶ waiting ──▶ finalizer ──▶ pod recorded ──▶ running ──▶ ended ──▶ finalizer ──▶ expired
 *                │ ▲         added         (may run)        │ ▲      (Secrets,    removed
 *                └─┘                                        └─┘    then status)
 *
 * An Update runs at most once. The status records the pod before its agent receives the first request. From then on:
 *
 *   the recorded pod exists              send the start request, which has no effect the second time, and follow the run;
 *                                        once the run was seen running, only attach to it
 *   it is deleted, or another exists     the run ended with its pod: aborted, never started elsewhere
 *   the Update is being deleted          never start the run; cancel it, and wait for its end
 *
 * After a crash, the next operator finds one of these states and continues from there.
 */
import { firstDecision, type Rule } from "@pko/kube";

import type { UpdatePlan } from "../steps.ts";
import type { UpdateView } from "../view.ts";
import { approvalRefused, approvalUnverified, planLost, planUnread } from "./approval.ts";
import { complete, completeWithFinalizer } from "./complete.ts";
import { deletedBeforeStart, deletedWhileRunning } from "./deletion.ts";
import { podDeleted, runFinished, runRejected, startedByOtherOperator } from "./result.ts";
import { planNotRead, running, runNotAttached, runNotFollowed } from "./running.ts";
import { specInvalid, stackUnknown } from "./spec.ts";
import { finalizerMissing, start } from "./start.ts";
import { notStopped } from "./timeout.ts";
import { inputsNotRead, notFirst, podNotReady, slotMissing, workspaceIdle, workspaceUnavailable } from "./waiting.ts";

const rules: readonly Rule<UpdateView, UpdatePlan>[] = [
  completeWithFinalizer, // complete: remove the finalizer
  complete, // complete, without the finalizer: delete it when its TTL has expired
  deletedBeforeStart, // deleted before its operation started: it ends as Canceled, and its Approval can be used again
  specInvalid, // the spec is invalid: it fails
  startedByOtherOperator, // started by an operator that recorded no pod: its result is unknown
  runFinished, // the agent has reported the result: store it
  runRejected, // the agent will not run the operation, or has no record of it
  podDeleted, // the recorded pod no longer exists: the run ended with it
  deletedWhileRunning, // deleted while the operation may run: cancel it, and wait for its end
  runNotAttached, // the operation was seen running and is not followed yet, for example after a restart: attach, never start
  planNotRead, // the pod is recorded, and the plan that it applies is needed to start or attach: read it
  runNotFollowed, // the pod is recorded and its run is not followed yet: start or attach
  notStopped, // it exceeded its timeout long ago, and the agent has not stopped it: report it
  running, // report the state and the progress of the run
  stackUnknown, // the prepared Workspace does not have the stack: it fails
  approvalRefused, // its Stack requires an approval that it does not have: it fails
  workspaceUnavailable, // the Workspace cannot run it yet: wait
  notFirst, // another Update of the Workspace runs first: wait
  approvalUnverified, // its Stack, or the admission policy for Approvals, is not known yet: wait, without a slot
  slotMissing, // as many updates as allowed are running: wait
  workspaceIdle, // the Workspace has no pod: wait until it is awake
  podNotReady, // the Workspace's pod is missing or being replaced: wait
  inputsNotRead, // the Workspace has not read and prepared its inputs since this Update was created: wait
  planUnread, // about to start: read the plan that it applies
  planLost, // that plan cannot be read: it fails
  finalizerMissing, // about to start: add the finalizer first
  start, // everything is ready: use the approval, and record the pod in which the operation runs
];

export function planUpdate(view: UpdateView): UpdatePlan {
  return firstDecision(rules, view);
}
