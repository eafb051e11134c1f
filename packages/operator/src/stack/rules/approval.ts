/** Rules about approvals: an update that needs one is planned first, and then applies exactly that plan. */
import type { ApprovalRequest } from "@pko/api";

import {
  approvalPolicy,
  approvalProgress,
  currentRequest,
  expiryOf,
  isOpen,
  planToRecord,
  unrecordedPlan,
  type ApprovalProgress,
} from "../history/approval.ts";
import { approvalPolicyOf } from "../../shared/approvals.ts";
import { leastApproval } from "../../shared/workspace-classes.ts";
import { isSameTrigger, parseTrigger, type Stage } from "../history/trigger.ts";
import * as messages from "../messages.ts";
import { processing, stalled, type Outcome } from "../outcome.ts";
import { unchanged, wait, type StackPlan } from "../steps.ts";
import { isDeleting, lastUpdateIn, withdrawnFailure, type StackView } from "../view.ts";
import { nextDue, type Due } from "./due.ts";
import { readyOutcome } from "./no-update-due.ts";

export function planUnrecorded(view: StackView): StackPlan | undefined {
  const update = unrecordedPlan(view);
  const plan = update && planToRecord(view, update);
  if (!plan) return undefined;
  const { request } = plan;
  const outcome = request.state === "Pending" ? awaiting(view, request) : processing(messages.planCleared(request));
  return { steps: [{ kind: "recordPlan", plan }], outcome, requeueAt: expiryOf(request) };
}

/** The probe requeues the Stack when the policy is in force. */
export function approvalPolicyMissing(view: StackView): StackPlan | undefined {
  const { approvalPolicy: state } = view;
  if (!approvalPolicy(view)) return undefined;
  switch (state.kind) {
    case "missing":
      return wait(stalled("ApprovalPolicyMissing", messages.policyMissing[state.policy]));
    case "unverified":
      return wait(stalled("ApprovalPolicyMissing", messages.policyUnverified(state.why)));
    case "namespaceTerminating":
      return wait(stalled("NamespaceTerminating", messages.namespaceTerminating));
    case "unknown":
    case "inForce":
      return undefined;
  }
}

/** An update is due. The probe checks the policy in a moment, which is too short to be reported. */
export function approvalPolicyUnchecked(view: StackView): StackPlan | undefined {
  return approvalPolicy(view) && view.approvalPolicy.kind === "unknown" ? wait(unchanged) : undefined;
}

/**
 * The source requeues the Stack when the commits are compared. Until then, users see the plan as it was. If that takes longer,
 * because the Git server cannot be reached, they also see why.
 */
export function planUncompared(view: StackView): StackPlan | undefined {
  const progress = dueApproval(view);
  if (progress?.kind !== "uncompared") return undefined;
  const { source } = view;
  if (source.kind !== "ready" || source.contentProblem === undefined) return wait(unchanged);
  const { request } = progress;
  const why = messages.planUncompared(request, { commit: source.revision, why: source.contentProblem });
  if (request.state !== "Pending") return wait(processing(why, messages.comparisonOfCommits));
  const outcome = awaiting(view, request);
  return wait({ ...outcome, message: `${outcome.message}\n${why}` });
}

export function approvalRejected(view: StackView): StackPlan | undefined {
  const progress = dueApproval(view);
  if (progress?.kind !== "rejected") return undefined;
  return wait(stalled("ApprovalRejected", messages.rejected(progress.request, isDeleting(view))));
}

export function approvalPending(view: StackView): StackPlan | undefined {
  const progress = dueApproval(view);
  if (progress?.kind !== "pending") return undefined;
  const { request } = progress;
  return wait(awaiting(view, request), expiryOf(request));
}

/** The source has returned to what is deployed. After a failure, the plan may still be what is to be retried. */
export function requestObsolete(view: StackView): StackPlan | undefined {
  const request = currentRequest(view);
  const due = nextDue(view);
  if (!request || !isOpen(request) || !due || due.kind === "now") return undefined;
  const [last, trigger] = [lastUpdateIn(view), parseTrigger(request.trigger)];
  // The plan may have been kept for a later generation or revision, so the triggers may differ.
  if (last?.failure === withdrawnFailure) return undefined;
  if (last?.state === "failed" && trigger && isSameTrigger(last, trigger)) return undefined;
  const outcome = readyOutcome(view) ?? processing(messages.requestObsolete(request));
  return { steps: [{ kind: "recordPlan", plan: { request: { ...request, state: "Superseded" } } }], outcome };
}

/** Undefined if no update is due, or it needs no approval. */
function dueApproval(view: StackView): ApprovalProgress | undefined {
  const due = nextDue(view);
  if (due?.kind !== "now" || !approvalPolicy(view)) return undefined;
  return approvalProgress(view, due.trigger);
}

type AwaitingApproval = Extract<Outcome, { kind: "awaitingApproval" }>;

function awaiting(view: StackView, request: ApprovalRequest): AwaitingApproval {
  return {
    kind: "awaitingApproval",
    message: messages.awaitingApproval(view.stack, request, requiringClass(view)),
    waitingFor: messages.approvalOf(request.updateName),
    expiresAt: expiryOf(request),
  };
}

/** The WorkspaceClass that requires more approvals than the Stack does. */
function requiringClass({ stack, workspaceClass }: StackView): string | undefined {
  if (workspaceClass.kind !== "one") return undefined;
  const required = approvalPolicyOf(stack, leastApproval(workspaceClass))?.required;
  return required === approvalPolicyOf(stack)?.required ? undefined : workspaceClass.name;
}

/** What the Update of a due update does. A drift check changes nothing, so it needs no plan. */
export function stageOf(view: StackView, { trigger }: Extract<Due, { kind: "now" }>): Stage {
  if (!approvalPolicy(view) || trigger.type === "refresh") return { kind: "direct" };
  const progress = approvalProgress(view, trigger);
  return progress.kind === "cleared" ? { kind: "apply", request: progress.request } : { kind: "plan" };
}
