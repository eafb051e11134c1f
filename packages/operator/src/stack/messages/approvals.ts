/** Plans and their approvals. */
import type { ProbedPolicy } from "../../approvals/policy-probe.ts";
import { approvalKind, reconcileRequestAnnotation, type ApprovalRequest, type Stack } from "@pko/api";

export const notPlanned = (why: string): string => `The changes could not be planned: ${why}`;
export const noPlan = "the preview succeeded, but kept no plan";

export const planCleared = ({ updateName }: ApprovalRequest): string =>
  `The plan of Update ${updateName} needs no approval and is being applied.`;

export const approvalOf = (updateName: string): string => `an Approval of the plan of Update ${updateName}`;

/** Replacements and deletions first. */
function planText({ summary, unknownInputs = 0, coveredCommit }: ApprovalRequest): string {
  const [values, are] = unknownInputs === 1 ? ["value", "is"] : ["values", "are"];
  return [
    summary,
    ...(unknownInputs === 0 ? [] : [`${unknownInputs} input ${values} ${are} known only while the plan is applied.`]),
    ...(coveredCommit === undefined ? [] : [planCovers(coveredCommit)]),
  ].join("\n");
}

const planCovers = (commit: string): string =>
  `The plan also covers commit ${commit}, which changes nothing that it depends on.`;

/** `why`: a clause. */
export const planUncompared = (
  { updateName }: ApprovalRequest,
  { commit, why }: { readonly commit: string; readonly why: string },
): string =>
  `Whether the plan of Update ${updateName} also covers commit ${commit} is not known, because the commits cannot be compared: ${why}. ` +
  "Until then, the plan is not applied. The comparison is repeated for a few minutes; if it does not succeed, a new plan is made.";

export const comparisonOfCommits = "a comparison of the commit with that of the plan";

/** `requiredBy`: the WorkspaceClass that requires it, if the Stack itself does not. */
export function awaitingApproval({ metadata }: Stack, request: ApprovalRequest, requiredBy?: string): string {
  const { name = "", namespace = "" } = metadata;
  const because = requiredBy === undefined ? "" : `, because the WorkspaceClass ${requiredBy} requires it`;
  return [
    `The changes must be approved before ${request.expiresAt}${because}:`,
    planText(request),
    `To approve them: kubectl pulumi approve ${name} --namespace ${namespace}`,
    "Or, without the plugin:",
    "kubectl create -f - <<EOF",
    JSON.stringify(approvalManifest(namespace, request)),
    "EOF",
  ].join("\n");
}

/** The shell inserts the name of the user, which the API server compares with the user of the request. */
function approvalManifest(namespace: string, { updateName, updateUid, digest }: ApprovalRequest): object {
  const { apiVersion, kind } = approvalKind;
  const decidedBy = "$(kubectl auth whoami --output jsonpath={.status.userInfo.username})";
  const spec = { updateName, updateUid, digest, decision: "Approve", decidedBy };
  return { apiVersion, kind, metadata: { generateName: `${updateName}-`, namespace }, spec };
}

/** For the event, which is short. */
export const approvalRequested = (request: ApprovalRequest): string =>
  `The plan of Update ${request.updateName} must be approved before ${request.expiresAt}:\n${planText(request)}`;

function decidedBy({ decidedBy: user = "an unknown user", reason }: ApprovalRequest): string {
  return reason ? `by ${user}: ${reason}` : `by ${user}.`;
}

export const approved = (request: ApprovalRequest): string =>
  `The plan of Update ${request.updateName} was approved ${decidedBy(request)}`;

const newRequest = `set the annotation ${reconcileRequestAnnotation} of the Stack to a new value`;

const rejectedUpdate = `It is not applied. A new plan is made when the source, an input, or a field of the spec on which the plan depends changes; to request one now, ${newRequest}.`;

/** A deletion cannot be reverted, and does not depend on the source. */
const rejectedDestroy =
  "Nothing is destroyed, and the Stack is kept. To delete the Stack and keep its resources, set spec.destroyOnFinalize to false; " +
  `to plan the destroy again, ${newRequest}.`;

export const rejected = (request: ApprovalRequest, isDestroy: boolean): string =>
  `The plan of Update ${request.updateName} was rejected ${decidedBy(request)}\n${isDestroy ? rejectedDestroy : rejectedUpdate}`;

export const requestExpired = ({ updateName, expiresAt }: ApprovalRequest): string =>
  `The plan of Update ${updateName} expired at ${expiresAt}, before it was applied; a new plan is being made.`;

/** `why`: a clause; undefined if it is known that the source has changed, or that it has not. */
export function requestSuperseded({ updateName }: ApprovalRequest, why: string | undefined): string {
  const text = `The plan of Update ${updateName} was not applied, because the spec, the source or an input has changed, or its Update was deleted.`;
  if (why === undefined) return text;
  return `${text} Whether it also covers the new commit is not known, because the commits cannot be compared: ${why}.`;
}

export const requestObsolete = ({ updateName }: ApprovalRequest): string =>
  `The plan of Update ${updateName} is not needed: the source and the spec are again those of the last update.`;

const policyRemedy =
  "Install the policies that are part of the Helm chart and of the quickstart manifest. This is checked again every minute.";

/** By the policy that is not in force. */
export const policyMissing: Readonly<Record<ProbedPolicy, string>> = {
  approvals:
    "The Stack requires approvals, but users can create Approvals in the name of others: the admission policy for Approvals " +
    `is not in force. Nothing is started. ${policyRemedy}`,
  safeguards:
    "The Stack requires approvals, but every user who may edit it can remove that requirement: the admission policy " +
    `stack-safeguards is not in force. Nothing is started. ${policyRemedy}`,
};

export const policyUnverified = (why: string): string =>
  "The Stack requires approvals, but the operator cannot check whether the admission policies for approvals are in force: " +
  `${why}. Nothing is started. Allow the operator to create Approvals and to patch Stacks; for this, it does so only in dry runs. ${policyRemedy}`;

export const newPlan = "a new plan, when this one expires";
