/**
 * Whether an Update may change resources, whoever created it. A protected Stack is not destroyed. If the Stack that controls
 * the Workspace of the Update requires approvals, the Update must apply a plan that is approved, or that needs no approval.
 */
import { isComplete, type Approval, type NormalUpdate } from "@pko/api";

import {
  approvalsOf,
  changesResources,
  decisionIn,
  needsApproval,
  type ApprovalPolicy,
} from "../../shared/approvals.ts";
import { pauseMs } from "../../shared/pauses.ts";
import * as messages from "../messages.ts";
import type { PlanSource, Step, UpdatePlan } from "../steps.ts";
import { hasStarted, sinceCreation, type PlanFacts, type UpdateView } from "../view.ts";
import { endedWithoutResult } from "./ended.ts";

type Verdict =
  | { readonly kind: "allowed"; readonly approval?: Approval }
  /** It depends on something that has not been read yet. */
  | { readonly kind: "unknown" }
  | { readonly kind: "refused"; readonly message: string };

const allowed: Verdict = { kind: "allowed" };
const unknown: Verdict = { kind: "unknown" };
const refused = (message: string): Verdict => ({ kind: "refused", message });

function verdictOn(view: UpdateView, spec: NormalUpdate): Verdict {
  const { approval, approvalPolicy } = view;
  const { stack, plan } = approval;
  if (!changesResources(spec)) return allowed;
  if (stack?.state === "missing" || (stack && approval.least === "unknown")) return unknown;
  if (stack?.isProtected && spec.type === "destroy") return refused(messages.stackProtected(stack.name));
  const { applyPlan } = spec;
  if (applyPlan && !isPlanFor(plan, spec)) return refused(messages.planUnknown(applyPlan.updateName));
  if (!stack?.policy) return allowed;
  if (!plan) return refused(messages.noPlanNamed(stack.name));
  // While the policy is not in force, a plan waits: it may be approved already, and the policy is checked every minute.
  return approvalPolicy.kind === "inForce" ? verdictOnPlan(view, { spec, policy: stack.policy, plan }) : unknown;
}

/** The plan of the same digest, made for the same operation on the same stack. */
function isPlanFor(plan: PlanFacts | undefined, { applyPlan, type, workspaceName, stackName }: NormalUpdate): boolean {
  if (!plan || !applyPlan) return false;
  return (
    plan.uid === applyPlan.updateUid &&
    plan.plan?.digest === applyPlan.digest &&
    plan.operation === type &&
    plan.workspaceName === workspaceName &&
    plan.stackName === stackName
  );
}

interface Application {
  readonly spec: NormalUpdate;
  readonly policy: ApprovalPolicy;
  readonly plan: PlanFacts;
}

function verdictOnPlan(view: UpdateView, { spec, policy, plan: { name, plan, uid, endedAt } }: Application): Verdict {
  const expiresAt = endedAt + policy.expiresAfterMs;
  if (view.now >= expiresAt) return refused(messages.planExpired(name, expiresAt));
  if (!plan || !needsApproval(policy, plan, spec.type)) return allowed;
  const identity = { updateName: name, updateUid: uid, digest: plan.digest };
  const approvals = approvalsOf(identity, expiresAt, view.approval.approvals);
  const ownUid = view.update.metadata.uid;
  const used = approvals.find(({ status }) => status?.usedBy && status.usedBy.updateUid !== ownUid)?.status?.usedBy;
  if (used) return refused(messages.planUsed(name, used.updateName));
  const decision = decisionIn(approvals);
  if (decision?.spec.decision === "Reject") return refused(messages.planRejected(name, decision.spec.decidedBy));
  const { approvalName } = spec.applyPlan ?? {};
  const approval = approvals.find(({ metadata }) => approvalName === undefined || metadata.name === approvalName);
  return approval ? { kind: "allowed", approval } : refused(messages.notApproved(name, approvalName));
}

/** Only before the start: the approval of an Update that may be running has been used. */
const currentVerdict = (view: UpdateView): Verdict =>
  view.spec.ok && !hasStarted(view) ? verdictOn(view, view.spec.value) : allowed;

export function approvalRefused(view: UpdateView): UpdatePlan | undefined {
  const verdict = currentVerdict(view);
  if (verdict.kind !== "refused") return undefined;
  return endedWithoutResult(view, { reason: "Failed", message: verdict.message }, { kind: "confirmApproval" });
}

/** In case nothing requeues it. */
const unverifiedPauses = { least: 5000, most: 60_000 } as const;

/** The policy may be missing for days. Until then, nothing else starts in the workspace: this Update is the first. */
export function approvalUnverified(view: UpdateView): UpdatePlan | undefined {
  if (currentVerdict(view).kind !== "unknown") return undefined;
  return {
    steps: [{ kind: "giveUpSlot" }],
    outcome: { kind: "unchanged" },
    requeueAt: view.now + pauseMs(sinceCreation(view), unverifiedPauses),
  };
}

/** The plan that the Update applies; undefined if it applies none. */
export function planToApply({ spec, approval }: UpdateView): PlanSource | undefined {
  if (!spec.ok || !spec.value.applyPlan) return undefined;
  const { updateName, updateUid } = spec.value.applyPlan;
  return { updateName, updateUid, secretNames: approval.plan?.plan?.secretNames ?? [] };
}

/** Whether it may start with an approval, for which the admission policies must be in force. */
export const awaitsApproval = (view: UpdateView): boolean =>
  planToApply(view) !== undefined && !hasStarted(view) && !isComplete(view.update);

export function planUnread(view: UpdateView): UpdatePlan | undefined {
  const plan = planToApply(view);
  if (!plan || view.planContent) return undefined;
  return { steps: [{ kind: "readPlan", plan }], outcome: { kind: "unchanged" } };
}

export function planLost(view: UpdateView): UpdatePlan | undefined {
  const { planContent } = view;
  if (planContent?.kind !== "lost") return undefined;
  return endedWithoutResult(view, { reason: "Failed", message: messages.planUnreadable(planContent.why) });
}

/**
 * Before the pod is recorded: the Approval is marked as used, by this Update and no other. An Update that was interrupted after
 * that finds its own mark.
 */
export function approvalSteps(view: UpdateView): readonly Step[] {
  const { spec, approval } = view;
  if (!spec.ok || !changesResources(spec.value) || !(approval.stack || spec.value.applyPlan)) return [];
  const confirm: Step = { kind: "confirmApproval" };
  const verdict = verdictOn(view, spec.value);
  if (verdict.kind !== "allowed" || !verdict.approval || verdict.approval.status?.usedBy) return [confirm];
  const { name = "", uid = "", resourceVersion = "" } = verdict.approval.metadata;
  return [confirm, { kind: "useApproval", approval: { name, uid, resourceVersion } }];
}
