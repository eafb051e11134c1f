/**
 * What to do next for a Stack: the first rule that applies decides. Pure.
 *
 * A drift check runs only while no update is due, and creates its Update in the same way.
 *
 *   spec, source, inputs and prerequisites are in order
 *        │                               ┌──────────── a change, a request, a resync, a retry ─────────────┐
 *        ▼                               ▼                                                                │
 *   [update due] ──▶ [Workspace applied] ──▶ [Workspace ready] ──▶ [Update created] ──▶ [running] ──▶ [result recorded]
 *                                                                  │  ▲                                    │
 *                      with approvals: [plan recorded] ──▶ [approved] ─┘                                    │
 *   [deleted] ── wait for a running Update ──▶ the same with a destroy ──▶ [succeeded] ──▶ [finalizer removed]
 *
 * The next pass observes the result of each step, so a crash between two writes only repeats the last one.
 */
import { firstDecision } from "@pko/kube";

import type { StackPlan, StackRule } from "../steps.ts";
import type { StackView } from "../view.ts";
import {
  approvalPending,
  approvalPolicyMissing,
  approvalPolicyUnchecked,
  approvalRejected,
  planUncompared,
  planUnrecorded,
  requestObsolete,
} from "./approval.ts";
import {
  deletedWithoutDestroy,
  deletionProtected,
  destroyed,
  destroySourceMissing,
  finalizerMissing,
  finalizerRemoved,
  nothingToDestroy,
} from "./deletion/deletion.ts";
import { dependentsLeft } from "./deletion/dependents.ts";
import { resultUnreported } from "./deletion/unreported.ts";
import {
  driftCheckDue,
  driftCheckRejected,
  driftCheckRunning,
  driftChecksRecorded,
  driftUnrecorded,
} from "./drift/checks.ts";
import { noUpdateDue, outputsPending, retryScheduled, workspaceUnneeded } from "./no-update-due.ts";
import { historyExceeded } from "./history.ts";
import { classConflict, classUnknown } from "./workspace-class.ts";
import { commitSkipped } from "./path-filters.ts";
import { nameOccupied, writeRejected } from "./ownership.ts";
import { prerequisitesUnmet } from "./prerequisites.ts";
import { resultsRecorded, resultUnrecorded, updatesOrphaned } from "./result.ts";
import { updateBlocked, updateCancelled, updateRunning, updateStalled, updateSuperseded } from "./unfinished-update.ts";
import { sourcePending, sourceUnavailable } from "./source.ts";
import { dependencyCycle, specInvalid } from "./spec.ts";
import { suspended } from "./suspend.ts";
import { outsideUpdateWindow } from "./windows.ts";
import { workspaceRules } from "./workspace.ts";

const rules: readonly StackRule[] = [
  driftCheckRejected, // a drift check cannot start: report that, and leave the Stack as it is
  writeRejected, // the API server rejected a write of this pass: report it and retry later
  nameOccupied, // a write of this pass found another owner's object under its name: leave it alone
  updatesOrphaned, // Updates of a deleted Stack of the same name: remove their finalizer
  resultUnreported, // deleted, and the forge shows the preview of a pull request as running: keep its Updates for a while
  resultsRecorded, // Updates whose result is in the status: remove their finalizer
  driftChecksRecorded, // drift checks whose result is in the status or not needed: remove their finalizer
  resultUnrecorded, // an Update finished, and the status does not show it yet: record its result
  driftUnrecorded, // a drift check finished, and the status does not show it yet: record its result
  planUnrecorded, // a plan was made, and the status does not show it yet: record it, and request its approval
  historyExceeded, // there are more finished Updates than the history limits allow: delete the oldest
  finalizerRemoved, // deleted, and our finalizer is removed: nothing to do
  destroyed, // deleted, and the destroy succeeded: remove the finalizer
  deletionProtected, // deleted, and protect is set: keep the finalizer and destroy nothing
  dependentsLeft, // deleted, and Stacks that depend on it are being deleted, or may be soon: wait for them
  deletedWithoutDestroy, // deleted, and destroyOnFinalize is not set (or only previews run): remove the finalizer
  nothingToDestroy, // deleted before anything was deployed: remove the finalizer
  finalizerMissing, // add the finalizer before anything is deployed
  driftCheckRunning, // wait for the running drift check, or stop it if something else is due
  updateCancelled, // a user requested to cancel the running Update, or deletes the preview of a pull request: withdraw it
  updateSuperseded, // an Update that has not started is no longer needed: withdraw it
  updateBlocked, // an Update waits for a Workspace that failed: report the failure
  updateStalled, // the node of a running Update may be lost, or its agent does not stop it: report it
  updateRunning, // wait for the Update to finish
  suspended, // the Stack or the operator is suspended: start nothing
  specInvalid, // report the invalid fields
  dependencyCycle, // Stacks depend on each other: report the cycle
  classUnknown, // the labels of the namespace are not known yet, and so is its WorkspaceClass: wait
  classConflict, // more than one WorkspaceClass selects the namespace: report them
  approvalPolicyMissing, // approvals are required, and anyone could forge them, or nobody can check that: report it
  destroySourceMissing, // the destroy needs the program, whose source is not available
  sourceUnavailable, // report why the source has no revision to run
  sourcePending, // wait until the source has been read
  requestObsolete, // no update is due, but the status shows a request for one: nothing is left to approve
  commitSkipped, // the new commit changes nothing that pathFilters select: record it as seen
  driftCheckDue, // no update is due, but a drift check: prepare the Workspace, then create its Update
  retryScheduled, // the last update failed: wait for its retry
  workspaceUnneeded, // no update is due, and workspaceReclaimPolicy is Delete: delete the Workspace
  outputsPending, // no update is due, and the outputs of the last one are not written: write them, or report why not
  noUpdateDue, // up to date, out of retries, or cancelled
  approvalPolicyUnchecked, // approvals are required: wait until the admission policy has been checked
  planUncompared, // there is a plan and a newer commit: wait until it is known whether the plan covers it
  approvalRejected, // a user rejected the plan: nothing runs until something changes
  approvalPending, // wait for an approval of the plan, or until the plan expires
  outsideUpdateWindow, // an update is due, and no update window is open: wait until one opens
  prerequisitesUnmet, // wait for other Stacks, and request updates of those that are too old
  ...workspaceRules, // prepare the Workspace, then create the Update
];

export const planStack = (view: StackView): StackPlan => firstDecision(rules, view);
