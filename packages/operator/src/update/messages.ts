/** The texts of the rules: what conditions, status messages and events of an Update report. */
import { timestamp } from "@pko/kube";
import type { Drift, RunResult } from "@pko/rpc";

import type { WaitingForSlot } from "../shared/channels/slots.ts";
import { driftCount, driftSummary } from "../shared/drift.ts";
import { lostNodeMessage, type OverduePod } from "../shared/pods/lost-node.ts";
import { limitText, queueText } from "../shared/slot-text.ts";
import { truncate } from "../shared/truncate.ts";

/** The same while the operation runs, so that the condition need not be written again. */
export const running = "The operation is running.";

// Before the operation starts.

export const workspaceMissing = (workspace: string): string => `There is no Workspace ${workspace}.`;
export const workspaceDeleting = (workspace: string): string => `The Workspace ${workspace} is being deleted.`;
export const workspaceIdle = (workspace: string): string => `The Workspace ${workspace} is being woken.`;
export const workspaceNotReady = (workspace: string, why: string): string =>
  `The Workspace ${workspace} is not ready: ${why}`;
export const workspaceUnprocessed = "its latest spec has not been processed yet";
export const workspacePreparing = "it is being prepared";
export const podReplaced = "The Workspace's pod is being replaced.";
export const waitingForSlot = (slot: WaitingForSlot): string =>
  `The operation starts when its turn comes, because ${limitText(slot)}: ${queueText(slot)}.`;
export const preparedFirst = (workspace: string): string =>
  `The Workspace ${workspace} is checked, and prepared if something has changed, before the operation starts.`;
export const notFirst = (update: string): string => `The Update ${update} runs first in the Workspace.`;

interface MissingStack {
  readonly workspace: string;
  readonly stack: string;
  readonly stacks: readonly string[];
}

export function stackNotYet({ workspace, stack, stacks }: MissingStack): string {
  return `The Workspace ${workspace} has no stack ${stack}, only ${listed(stacks)}.`;
}

export function stackUnknown({ workspace, stack, stacks }: MissingStack): string {
  return (
    `spec.stackName: the Workspace ${workspace} has no stack ${stack}, only ${listed(stacks)}; ` +
    "create an Update with one of these names, or add the stack to spec.stacks of the Workspace first"
  );
}

const listed = (stacks: readonly string[]): string => truncate(stacks.join(", "), 200);

export const specInvalid = (problems: string): string => `The spec is invalid:\n${problems}`;

// Approvals.

const howToRequestPlan = (stack: string): string =>
  `Stack ${stack} plans its changes itself and requests an approval; to request a plan, request an update of the Stack`;

export const stackProtected = (stack: string): string =>
  `Stack ${stack} is protected, so nothing was destroyed. To allow it, set spec.protect of the Stack to false.`;

export const noPlanNamed = (stack: string): string =>
  `Stack ${stack} requires approvals, and this Update applies no approved plan, so nothing was changed. ${howToRequestPlan(stack)}.`;

export const planUnknown = (update: string): string =>
  `spec.applyPlan: there is no Update ${update} with this UID and a plan with this digest for the same operation, Workspace ` +
  "and stack, so nothing was changed. A new plan is needed.";

export const planExpired = (update: string, at: number): string =>
  `The plan of Update ${update} expired at ${timestamp(at)}, so nothing was changed. A new plan is needed.`;

export const notApproved = (update: string, approval: string | undefined): string =>
  approval === undefined
    ? `The plan of Update ${update} has not been approved, so nothing was changed. Create an Approval of it, and then another Update.`
    : `There is no Approval ${approval} of the plan of Update ${update}, so nothing was changed. A new plan is needed.`;

export const planRejected = (update: string, user: string): string =>
  `The plan of Update ${update} was rejected by ${user}, so nothing was changed. A new plan is needed.`;

export const planUsed = (update: string, by: string): string =>
  `The plan of Update ${update} was approved for one use, which Update ${by} has taken, so nothing was changed. A new plan is needed.`;

export const planUnreadable = (why: string): string => `${why} Nothing was changed. A new plan is needed.`;
export const planSecretMissing = (name: string): string => `Secret ${name} with the plan does not exist.`;
export const planSecretForeign = (name: string, update: string): string =>
  `Secret ${name} with the plan does not belong to Update ${update}.`;
export const planSecretEmpty = (name: string): string => `Secret ${name} contains no plan.`;

export const planNotKept = (operation: string, why: string): string =>
  `The ${operation} succeeded, but its plan could not be kept, so it cannot be approved: ${why}`;
export const planNotReported = "the workspace reported no plan; its image may be older than the operator";

// While the operation may run.

export const cancelling = "The operation is being cancelled because the Update was deleted.";
export const notStartable = (why: string): string => `The workspace cannot start the operation yet: ${why}.`;
export const noPodAddress = "its pod has no address";

export function unreachable(problem: string, sinceMs?: number): string {
  const what = sinceMs === undefined ? "cannot be reached" : `has not been reachable since ${timestamp(sinceMs)}`;
  return truncate(`The workspace ${what} (${problem}). The operation continues there as long as its pod runs.`, 1000);
}

export function nodeLost(pod: OverduePod): string {
  return lostNodeMessage(pod, "it is unknown whether the operation still runs there, so no other operation is started");
}

interface Unstopped {
  readonly pod: string;
  readonly namespace: string;
  readonly seconds: number;
}

export function notStopped({ pod, namespace, seconds }: Unstopped): string {
  return (
    `The operation exceeded its timeout of ${seconds} seconds, and the workspace has not reported that it was stopped. ` +
    "It may still be running, so no other operation is started. " +
    `To end it, run: kubectl delete pod ${pod} -n ${namespace}`
  );
}

// When it has ended.

export function runEnded(operation: string, { outcome, error, drift }: RunResult): string {
  const why = error ? `: ${error.message}` : ".";
  switch (outcome) {
    case "succeeded":
      return drift ? driftFound(drift) : `The ${operation} succeeded.`;
    case "failed":
      return `The ${operation} failed${why}`;
    case "cancelled":
      return `The ${operation} was cancelled${why}`;
    case "interrupted":
      return `The ${operation} was interrupted${why}`;
  }
}

function driftFound(drift: Drift): string {
  const count = driftCount(drift);
  if (count === 0) return "The resources match the state.";
  return `${count === 1 ? "1 resource differs" : `${count} resources differ`} from the state: ${driftSummary(drift)}.`;
}

export const deletedBeforeStart = "The Update was deleted before its operation started.";
export const notConfirmed =
  "The Update was deleted, and the workspace has not confirmed for 15 minutes that the operation was cancelled.";
export const rejectedByWorkspace = (why: string): string => `The workspace rejected the operation: ${why}`;
export const unknownToWorkspace = (why: string): string =>
  `The workspace no longer has a record of the operation (${why}). The operation is not started again.`;
export const podDeleted =
  "The workspace's pod was deleted or replaced while the operation may have been running. " +
  "Changes that the operation made before that remain. This Update does not start it again.";
export const startedByOtherOperator = (since: string): string =>
  `The operation was started at ${since} by an operator that has since been replaced. Its result is unknown.`;

export const outputsUnread = (why: string): string => `The outputs could not be read: ${why}`;
export const outputsLeftOut = (names: readonly string[]): string =>
  `These outputs do not fit into the Secret and were left out: ${truncate(names.join(", "), 1000)}`;
export const secretNotCreated = (name: string, why: string): string =>
  `The Secret ${name} could not be created: ${why}`;
export const secretNameTaken = (occupant: string): string =>
  `${occupant} Delete or rename it; the next update creates its own Secret.`;

export const recordNotStored = (why: string): string =>
  `The record of the run could not be stored: ${why} The result of the run is not affected.`;
export const recordNameTaken = (occupant: string): string => `${occupant} Delete it; the next run has another name.`;
export const recordWithoutEvents = (why: string): string =>
  `The record of the run has no events, because the workspace did not return them: ${why}`;

/** Contains no text of the operation, because the API server has rejected that. */
export function resultRejected(operation: string, { isSuccess }: { readonly isSuccess: boolean }): string {
  const how = isSuccess ? "succeeded" : "did not succeed";
  return (
    `The ${operation} ${how}. Its messages could not be stored because the API server rejected them; ` +
    "see the log of the workspace's pod."
  );
}
export const messagesNotStored = (why: string): string => `The messages of the operation could not be stored: ${why}`;

export const expired = (endTime: string | undefined, ttl: string): string =>
  `The Update ended at ${endTime ?? "an unknown time"} and was kept for ${ttl}.`;
