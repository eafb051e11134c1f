/** Why a Stack is in its state, what happens next, and what a user can do. Pure. */
import {
  conditionOf,
  decidingCondition,
  stackConditions,
  stateOf,
  type Stack,
  type StackReason,
  type StackState,
} from "@pko/api/browser";

import { notObserved } from "./fleet.ts";

export interface Explanation {
  readonly state: StackState;
  readonly reason: string;
  /** What the state means, in a sentence. */
  readonly meaning: string;
  /** What the operator reports, in full. */
  readonly message: string;
  readonly since?: string;
  readonly next: NextStep;
  readonly advice?: string;
}

interface Scheduled {
  readonly what: string;
  readonly time: string;
}

export type NextStep =
  | { readonly kind: "running"; readonly update: string }
  | ({ readonly kind: "scheduled" } & Scheduled)
  /** `next` is what happens if the wait lasts that long. */
  | { readonly kind: "waiting"; readonly for: string; readonly since: string; readonly next?: Scheduled }
  /** Something has to change first. */
  | { readonly kind: "nothing"; readonly text: string };

export function explain(stack: Stack): Explanation {
  const state = stateOf(stack);
  const condition = state === "Drifted" ? conditionOf(stack, "Drifted") : decidingCondition(stack);
  const reason = condition?.reason ?? "";
  const { approval } = stack.status ?? {};
  const message = reason === "AwaitingApproval" && approval ? approval.summary : condition?.message;
  const known = advice[reason as keyof typeof advice];
  return {
    state,
    reason,
    meaning: isObserved(stack) ? meaningOf(condition?.type ?? "", reason) : notObserved,
    message: message ?? "",
    ...(condition && { since: condition.lastTransitionTime }),
    next: nextStep(stack, state),
    ...(known !== undefined && { advice: known }),
  };
}

/** Whether the status is about the current spec. */
export function isObserved({ metadata, status }: Stack): boolean {
  const { observedGeneration = 0, conditions = [] } = status ?? {};
  return conditions.length > 0 && observedGeneration >= (metadata.generation ?? 0);
}

function meaningOf(type: string, reason: string): string {
  const table: Readonly<Record<string, Readonly<Record<string, string>>>> = stackConditions;
  const text = table[type]?.[reason] ?? "";
  const plain = text.replace(/^(?:True|False|Unknown): /, "");
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

function nextStep({ status = {}, metadata, spec }: Stack, state: StackState): NextStep {
  const { currentUpdate, next, waiting } = status;
  if (currentUpdate?.name !== undefined) return { kind: "running", update: currentUpdate.name };
  if (waiting) return { kind: "waiting", ...waiting, ...(next && { next }) };
  if (next) return { kind: "scheduled", ...next };
  if (spec.suspend) return { kind: "nothing", text: "Nothing starts until the Stack is resumed." };
  if (metadata.deletionTimestamp !== undefined) return { kind: "nothing", text: "The Stack is being deleted." };
  return { kind: "nothing", text: idleTexts[state] };
}

const idleTexts: Readonly<Record<StackState, string>> = {
  Ready: "Nothing is due. A new revision, a changed spec or a changed input starts the next update.",
  Drifted: "Nothing is due. An update with a refresh, or a change of the program, removes the drift.",
  Failing: "Nothing starts by itself until something changes.",
  Waiting: "The operator continues as soon as what it waits for has happened.",
  Working: "The operator is working.",
  Unknown: "The operator will process the Stack.",
};

type Reason = StackReason<"Reconciling"> | StackReason<"Stalled"> | "DriftDetected";

/** What a user can do about each reason; undefined if there is nothing to do. */
const advice: Readonly<Record<Reason, string | undefined>> = {
  StackProcessing: undefined,
  RetryingAfterFailure: "Read the diagnostics of the last run. Fix the program, its configuration or its permissions.",
  PreviewFailed: "Read the diagnostics of the last run. Fix the program, its configuration or its permissions.",
  PrerequisiteNotSatisfied: "Check the Stacks that it depends on.",
  AwaitingApproval: "Review the plan, then approve or reject it.",
  Suspended: "Resume the Stack, or the whole operator if that is suspended.",
  OutsideUpdateWindow: "Wait for the window. To ignore windows, see the documentation of update windows.",
  WaitingForSlot: "Nothing: it starts when its turn comes. An administrator can raise maxConcurrentUpdates.",
  WaitingForDependents: "Delete the Stacks that the message names, or wait until they are destroyed.",
  SpecInvalid: "Correct the fields that the message names.",
  SourceUnavailable: "Check the address, the revision and the credentials of the source.",
  UpdateConflict: "Wait for the other update. If none is running, remove the lock: kubectl pulumi unlock.",
  PulumiVersionTooLow: "Set a newer workspaceTemplate.spec.image.",
  WorkspaceClassConflict: "An administrator has to change the namespace selector of one of the classes.",
  WorkspaceClassLimitExceeded: "Lower the resources in workspaceTemplate to the limit that the message names.",
  WorkspaceFailed: "Check the events and the pod of the workspace.",
  UpdateFailed: "Read the diagnostics of the last run. Fix the program, its configuration or its permissions.",
  OwnershipConflict: "Delete or rename the object that the message names, or rename the Stack.",
  OutputsLost: "Request an update, which stores the outputs again.",
  NamespaceTerminating: "Delete Stacks before their namespace. See the documentation of deletion.",
  NodeLost: "If the node is dead, follow the message. Never do so while the node is alive.",
  ApprovalRejected: "Change the program or the spec, or request a new update.",
  ApprovalPolicyMissing: "An administrator has to install the admission policies of the operator.",
  RetriesExhausted: "Fix the cause, then request an update.",
  UpdateNotStopped: "Follow the message: the pod of the workspace has to be deleted.",
  Protected: "To allow the deletion, set spec.protect to false.",
  DriftDetected: "Change the program to match, or correct the drift with an update that refreshes.",
};
