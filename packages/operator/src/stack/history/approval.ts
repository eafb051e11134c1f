/** The plan that waits for an approval, from its Update to the Update that applies it. Pure. */
import type { ApprovalRequest } from "@pko/api";
import { timestamp } from "@pko/kube";

import { approvalsOf, decisionIn, needsApproval, type ApprovalPolicy } from "../../shared/approvals.ts";
import { parseTimestamp } from "../../shared/parse-timestamp.ts";
import { truncate } from "../../shared/truncate.ts";
import type { Step } from "../steps.ts";
import {
  hasPlan,
  presentStatus,
  unfinishedUpdate,
  validSpec,
  withdrawnFailure,
  type StackView,
  type UpdateFacts,
} from "../view.ts";
import { deployedAfter } from "./result.ts";
import { isSameRevision, isSameRun, parseTrigger, serializeTrigger, type Trigger } from "./trigger.ts";

/** Undefined for a Stack that needs no approvals. A Stack that only previews changes nothing. */
export function approvalPolicy(view: StackView): ApprovalPolicy | undefined {
  const spec = validSpec(view);
  return spec?.operation === "preview" ? undefined : spec?.approval;
}

/** The next plan to be recorded, if any. */
export function unrecordedPlan(view: StackView): UpdateFacts | undefined {
  const { approval } = presentStatus(view);
  // A plan without a trigger was not made for the Stack.
  const isNew = (update: UpdateFacts): boolean => update.trigger !== undefined && update.name !== approval?.updateName;
  return view.updates.find((update) => hasPlan(update) && update.hasFinalizer && isNew(update));
}

export interface RecordedPlan {
  readonly request: ApprovalRequest;
  /** As in `Result`. */
  readonly deployed?: boolean;
}

/** Every watcher of the Stack receives the summary. */
const longestSummary = 4096;

export function planToRecord(view: StackView, update: UpdateFacts): RecordedPlan | undefined {
  const { plan, trigger, name, uid, endedAt = view.now } = update;
  if (!plan || !trigger) return undefined;
  const policy = approvalPolicy(view);
  const isRequired = policy !== undefined && needsApproval(policy, plan, trigger.type);
  const deployed = deployedAfter(view, update);
  return {
    request: {
      state: isRequired ? "Pending" : "NotRequired",
      updateName: name,
      updateUid: uid,
      digest: plan.digest,
      trigger: serializeTrigger(trigger),
      summary: truncate(plan.summary, longestSummary),
      ...(plan.unknownInputs > 0 && { unknownInputs: plan.unknownInputs }),
      expiresAt: timestamp(endedAt + (policy?.expiresAfterMs ?? 0)),
    },
    ...(deployed !== undefined && { deployed }),
  };
}

/** How far the approval of a due update is. */
export type ApprovalProgress =
  /** `former`: what became of a request that was not applied. */
  | { readonly kind: "planNeeded"; readonly former?: "expired" | "superseded" }
  /** Whether the source still has the content of the plan is not known yet. */
  | { readonly kind: "uncompared"; readonly request: ApprovalRequest }
  | { readonly kind: "pending"; readonly request: ApprovalRequest }
  | { readonly kind: "rejected"; readonly request: ApprovalRequest }
  /** Approved, or without changes that need it. */
  | { readonly kind: "cleared"; readonly request: ApprovalRequest };

export function approvalProgress(view: StackView, trigger: Trigger): ApprovalProgress {
  const approval = currentRequest(view);
  if (!approval || approval.appliedBy !== undefined || approval.state === "Superseded") return { kind: "planNeeded" };
  const former = isOpen(approval) ? "superseded" : undefined;
  const planned = parseTrigger(approval.trigger);
  const content = planned && isSameRun(planned, trigger) ? contentFor(view, { planned, trigger }) : "other";
  if (content === "other") return { kind: "planNeeded", ...(former && { former }) };
  const request = withDecision(view, approval);
  if (content === "uncompared") return { kind: "uncompared", request };
  if (request.state === "Rejected") return { kind: "rejected", request };
  if (!isKept(view, request)) return { kind: "planNeeded", ...(former && { former }) };
  if (view.now >= expiryOf(request)) return { kind: "planNeeded", ...(former && { former: "expired" as const }) };
  return { kind: request.state === "Pending" ? "pending" : "cleared", request };
}

interface Triggers {
  readonly planned: Trigger;
  readonly trigger: Trigger;
}

function contentFor({ source }: StackView, { planned, trigger }: Triggers): "same" | "uncompared" | "other" {
  if (isSameRevision(planned, trigger)) return "same";
  const isCompared = source.kind === "ready" && source.revision === trigger.revision;
  return (isCompared ? source.contentOfPlan : undefined) ?? "other";
}

/** It waits for an approval, or to be applied. */
export const isOpen = ({ state, appliedBy }: ApprovalRequest): boolean =>
  appliedBy === undefined && (state === "Pending" || state === "Approved");

/** As if it had not been applied, if the Update that was to apply it was withdrawn before it started. */
export function currentRequest(view: Pick<StackView, "stack">): ApprovalRequest | undefined {
  const { approval, lastUpdate } = presentStatus(view);
  if (approval?.appliedBy === undefined) return approval;
  const isWithdrawn = lastUpdate?.name === approval.appliedBy && lastUpdate.failure === withdrawnFailure;
  if (!isWithdrawn) return approval;
  const { appliedBy: _, ...unused } = approval;
  return unused;
}

/** The name of the Update with the plan that may still be applied. */
export function plannedBy(view: Pick<StackView, "stack">): string | undefined {
  const { state, appliedBy, updateName } = currentRequest(view) ?? {};
  return appliedBy === undefined && state !== "Rejected" && state !== "Superseded" ? updateName : undefined;
}

export const expiryOf = ({ expiresAt }: ApprovalRequest): number => parseTimestamp(expiresAt) ?? 0;

/** The Update with the plan may have been deleted. */
function isKept({ updates }: StackView, { updateUid, digest }: ApprovalRequest): boolean {
  return updates.some((update) => update.uid === updateUid && !update.deleting && update.plan?.digest === digest);
}

/** Recorded, so that a restarted operator need not compare the commits again. */
function withCoverage({ source }: StackView, request: ApprovalRequest): ApprovalRequest {
  if (source.kind !== "ready" || source.contentOfPlan !== "same") return request;
  return { ...request, coveredCommit: source.revision };
}

/** Recomputed from the Approvals until the plan is applied. A rejection is final, and so is that it was superseded. */
function withDecision(view: StackView, recorded: ApprovalRequest): ApprovalRequest {
  const request = withCoverage(view, recorded);
  if (!isOpen(request)) return request;
  const { approvalName: _, decidedBy: __, decidedAt: ___, reason: ____, ...undecided } = request;
  const decision = decisionIn(approvalsOf(request, expiryOf(request), view.approvals));
  if (!decision) return { ...undecided, state: "Pending" };
  const { metadata, spec } = decision;
  return {
    ...undecided,
    state: spec.decision === "Approve" ? "Approved" : "Rejected",
    approvalName: metadata.name ?? "",
    decidedBy: spec.decidedBy,
    ...(metadata.creationTimestamp !== undefined && { decidedAt: metadata.creationTimestamp }),
    ...(spec.reason !== undefined && { reason: spec.reason }),
  };
}

/** What the status shows after these steps. */
export function approvalAfter(view: StackView, steps: readonly Step[]): ApprovalRequest | undefined {
  for (const step of steps) if (step.kind === "recordPlan") return step.plan.request;
  const approval = currentRequest(view);
  if (!approval || approval.appliedBy !== undefined) return isReplaced(view, steps) ? undefined : approval;
  const appliedBy = applyingUpdate(view, approval, steps);
  if (appliedBy !== undefined) return { ...withDecision(view, approval), appliedBy };
  return isReplaced(view, steps) || isBypassed(steps) ? undefined : withDecision(view, approval);
}

function applyingUpdate(
  { updates }: StackView,
  { updateName }: ApprovalRequest,
  steps: readonly Step[],
): string | undefined {
  for (const step of steps) {
    if (step.kind === "createUpdate" && step.stage?.kind === "apply") return step.update.metadata.name;
  }
  return updates.find(({ appliesPlan, failure }) => appliesPlan === updateName && failure !== withdrawnFailure)?.name;
}

/** A new plan is being made. */
function isReplaced(view: StackView, steps: readonly Step[]): boolean {
  const isCreated = steps.some((step) => step.kind === "createUpdate" && step.stage?.kind === "plan");
  return isCreated || (unfinishedUpdate(view)?.isPlan ?? false);
}

/** Approvals are no longer required. */
function isBypassed(steps: readonly Step[]): boolean {
  const isDirect = (step: Step): boolean =>
    step.kind === "createUpdate" && step.stage?.kind === "direct" && step.trigger.type !== "refresh";
  return steps.some(isDirect);
}

/** What these steps change about the approval: for events and metrics. */
export type ApprovalNews =
  | { readonly kind: "awaiting"; readonly request: ApprovalRequest }
  | { readonly kind: "approved" | "rejected" | "expired" | "superseded"; readonly request: ApprovalRequest };

export function approvalNews(view: StackView, steps: readonly Step[]): ApprovalNews[] {
  const { approval: before } = presentStatus(view);
  const after = approvalAfter(view, steps);
  const isRecorded = steps.some(({ kind }) => kind === "recordPlan");
  if (after && isRecorded) return recordNews(after);
  if (after && after.state !== before?.state) {
    if (after.state === "Approved") return [{ kind: "approved", request: after }];
    if (after.state === "Rejected") return [{ kind: "rejected", request: after }];
  }
  // The pass that created the Update may have ended before it wrote the status.
  const { trigger } = steps.find((step) => step.kind === "createUpdate") ?? unfinishedUpdate(view) ?? {};
  if (!before || after || !trigger) return [];
  const progress = approvalProgress(view, trigger);
  const former = progress.kind === "planNeeded" ? progress.former : "superseded";
  return former ? [{ kind: former, request: before }] : [];
}

function recordNews(request: ApprovalRequest): ApprovalNews[] {
  if (request.state === "Pending") return [{ kind: "awaiting", request }];
  return request.state === "Superseded" ? [{ kind: "superseded", request }] : [];
}
