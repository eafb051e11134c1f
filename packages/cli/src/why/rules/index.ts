/** Why a Stack is as it is: the first rule that applies decides. Pure. */
import type { Finding } from "../cause.ts";
import type { StackFacts } from "../facts.ts";
import {
  approvalPolicyMissing,
  approvalRejected,
  awaitingApproval,
  outsideUpdateWindow,
  protectedStack,
  suspended,
  waitingForDependents,
  waitingForSlot,
} from "./control.ts";
import {
  dependencyCycle,
  inputMissing,
  outputsLost,
  ownershipConflict,
  prerequisite,
  sourceUnavailable,
  specInvalid,
} from "./inputs.ts";
import {
  namespaceTerminating,
  notObserved,
  operatorAbsent,
  operatorDown,
  operatorSuspended,
  stackMissing,
  upToDate,
} from "./operator.ts";
import type { Rule } from "./rule.ts";
import { locked, unknown, updateFailed, updateRunning, workspacePreparing } from "./updates.ts";
import {
  classConflict,
  classLimitExceeded,
  nodeLost,
  podStuck,
  quotaExceeded,
  serviceAccountMissing,
  versionTooLow,
  workspaceFailed,
} from "./workspace.ts";

const rules: readonly Rule[] = [
  stackMissing, // there is no such Stack
  operatorAbsent, // not processed, because no operator is installed
  operatorDown, // nothing happens, because no replica of the operator leads
  operatorSuspended, // an administrator has suspended the whole operator
  namespaceTerminating, // nothing can be created in a namespace that is being deleted
  notObserved, // the status is about an older spec: everything below would be out of date
  upToDate, // nothing is wrong, or only drift
  suspended, // a user has suspended the Stack
  protectedStack, // its deletion waits until protect is false
  nodeLost, // its pod is on a node that may be lost
  ownershipConflict, // another owner's object has a name that it needs
  classConflict, // two WorkspaceClasses select its namespace
  classLimitExceeded, // its pod would exceed a limit of its class
  approvalPolicyMissing, // approvals would not be trustworthy
  approvalRejected, // a user has rejected the plan
  awaitingApproval, // a user has to approve the plan
  outsideUpdateWindow, // no update window is open
  waitingForSlot, // as many updates as allowed are running
  waitingForDependents, // other Stacks have to be destroyed first
  dependencyCycle, // Stacks wait for each other
  inputMissing, // a Secret, a ConfigMap or a key is missing
  specInvalid, // the spec has invalid fields
  sourceUnavailable, // Git, Flux or the Program has no revision to run
  prerequisite, // another Stack has to succeed first: its cause counts
  locked, // another update of the Pulumi stack runs, or its lock is left
  versionTooLow, // the Pulumi CLI is too old
  quotaExceeded, // a quota does not allow an object or the pod
  serviceAccountMissing, // the pod's service account does not exist
  podStuck, // the pod is rejected, pending, crashing or unreachable
  workspaceFailed, // the agent cannot prepare the workspace
  outputsLost, // the update succeeded, and its outputs were not stored
  updateRunning, // an update runs
  workspacePreparing, // the workspace is being prepared
  updateFailed, // the last update failed: by the class of its failure
  unknown, // a reason that this version does not know
];

export function explainFacts(facts: StackFacts): Finding {
  for (const rule of rules) {
    const finding = rule(facts);
    if (finding) return finding;
  }
  throw new Error("no rule applies");
}
