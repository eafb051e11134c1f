/** When a plan needs an approval, and which Approval decides. Pure. */
import {
  stackApproval,
  type Approval,
  type ApprovalRequirement,
  type Control,
  type Stack,
  type UpdatePlan,
  type UpdateSpec,
} from "@pko/api";
import { refKey, type Key } from "@pko/kube";

import { parseTimestamp } from "./parse-timestamp.ts";

/** Approvals by `namespace/name` of the Update whose plan they decide about. */
export const approvalPlanIndex = "approval/plan";

export const approvalIndexers = {
  [approvalPlanIndex]: (approval: Approval): string[] => [planKeyOf(approval)],
};

export const planKeyOf = ({ metadata, spec }: Approval): Key =>
  refKey({ namespace: metadata.namespace ?? "", name: spec.updateName });

export type ApprovalPolicy = NonNullable<Control["approval"]>;

/**
 * Known even if the rest of the spec is invalid. Undefined if no approval is ever required. `least`: what the WorkspaceClass of the
 * namespace requires.
 */
export function approvalPolicyOf(
  { spec }: Pick<Stack, "spec">,
  least?: ApprovalRequirement,
): ApprovalPolicy | undefined {
  const known: Partial<Stack["spec"]> | undefined = spec;
  return stackApproval(known ?? {}, least);
}

/** A preview, a refresh that shows drift, and a plan for a destroy change nothing. A refresh writes only the state. */
export const changesResources = ({
  type,
  previewOnly = false,
}: Pick<UpdateSpec, "type" | "previewOnly"> = {}): boolean => (type === "up" || type === "destroy") && !previewOnly;

/** `type`: of the operation that the plan is for. Every change of a destroy is destructive. */
export function needsApproval(
  { required }: Pick<ApprovalPolicy, "required">,
  { changes, destructive }: Pick<UpdatePlan, "changes" | "destructive">,
  type: string,
): boolean {
  return changes && (required === "Always" || destructive || type === "destroy");
}

export interface PlanIdentity {
  readonly updateName: string;
  readonly updateUid: string;
  readonly digest: string;
}

/** The Approvals of exactly this plan that were created before it expired, the oldest first. */
export function approvalsOf(plan: PlanIdentity, expiresAt: number, all: readonly Approval[]): Approval[] {
  const createdAt = ({ metadata }: Approval): number => parseTimestamp(metadata.creationTimestamp) ?? Infinity;
  const order = (approval: Approval): string => approval.metadata.name ?? "";
  return all
    .filter(
      (approval) =>
        approval.spec.updateName === plan.updateName &&
        approval.spec.updateUid === plan.updateUid &&
        approval.spec.digest === plan.digest &&
        createdAt(approval) < expiresAt,
    )
    .toSorted((a, b) => createdAt(a) - createdAt(b) || (order(a) < order(b) ? -1 : 1));
}

/** A rejection wins until the run starts. Of several approvals, the oldest decides. */
export function decisionIn(approvals: readonly Approval[]): Approval | undefined {
  return approvals.find(({ spec }) => spec.decision === "Reject") ?? approvals[0];
}
