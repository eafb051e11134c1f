/** What the approval of an Update is based on. Pure: the same facts are derived from a store and from the API server. */
import { stackKind, stackNameOf, type Approval, type Stack, type Update, type Workspace } from "@pko/api";
import type { ObjectRef } from "@pko/kube";

import { approvalPolicyOf } from "../../shared/approvals.ts";
import { parseTimestamp } from "../../shared/parse-timestamp.ts";
import { isConditionTrue } from "../../shared/objects/conditions.ts";
import { endTimeOf } from "../../shared/updates.ts";
import type { ApprovalFacts, PlanFacts } from "../view.ts";

type NamespacedRef = ObjectRef & { readonly namespace: string };

/**
 * The Stack of the Workspace, which has its name. Owner references alone do not decide: who may change a Workspace could remove
 * them, and so the requirement of an approval.
 */
export function stackRefOf(workspace: Workspace | undefined): NamespacedRef | undefined {
  const { namespace = "", name = "" } = workspace?.metadata ?? {};
  return workspace && { namespace, name: stackNameOf(name) };
}

const controllerOf = (workspace: Workspace | undefined) =>
  workspace?.metadata.ownerReferences?.find(
    ({ kind, apiVersion, controller }) =>
      controller === true && kind === stackKind.kind && apiVersion.split("/")[0] === stackKind.apiVersion.split("/")[0],
  );

/** The Update whose plan the Update applies. */
export function planRefOf({ metadata, spec }: Update): NamespacedRef | undefined {
  return spec?.applyPlan && { namespace: metadata.namespace ?? "", name: spec.applyPlan.updateName };
}

interface ApprovalObjects {
  readonly workspace: Workspace | undefined;
  /** With the name that `stackRefOf` returns. */
  readonly stack: Stack | undefined;
  /** With the name that `planRefOf` returns. */
  readonly plan: Update | undefined;
  readonly approvals: readonly Approval[];
  readonly least: ApprovalFacts["least"];
}

export function approvalFacts({ workspace, stack, plan, approvals, least }: ApprovalObjects): ApprovalFacts {
  const facts = stackFacts(controllerOf(workspace), stack, least);
  return {
    least,
    ...(facts && { stack: facts }),
    ...(plan && { plan: planFacts(plan) }),
    approvals: approvals
      .map(approvalFact)
      .toSorted((a, b) => ((a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1)),
  };
}

/** Without metadata in which a store and the API server may differ. */
function approvalFact({ apiVersion, kind, metadata, spec, status }: Approval): Approval {
  const { name = "", uid = "", resourceVersion = "", creationTimestamp = "" } = metadata;
  return {
    apiVersion,
    kind,
    metadata: { name, uid, resourceVersion, creationTimestamp },
    spec,
    ...(status && { status }),
  };
}

/** Undefined for a Workspace without a Stack. */
function stackFacts(
  controller: { readonly name: string; readonly uid: string } | undefined,
  stack: Stack | undefined,
  least: ApprovalFacts["least"],
): ApprovalFacts["stack"] {
  if (controller && stack?.metadata.uid !== controller.uid) return { state: "missing", name: controller.name };
  if (!stack) return undefined;
  const { name = "" } = stack.metadata;
  const policy = approvalPolicyOf(stack, least === "unknown" ? undefined : least);
  const spec: Partial<Stack["spec"]> | undefined = stack.spec;
  return { state: "present", name, ...(policy && { policy }), isProtected: spec?.protect === true };
}

function planFacts(update: Update): PlanFacts {
  const { metadata, spec, status } = update;
  const isMade = isConditionTrue(update, "Complete") && !isConditionTrue(update, "Failed") && spec?.savePlan === true;
  return {
    name: metadata.name ?? "",
    uid: metadata.uid ?? "",
    workspaceName: spec?.workspaceName ?? "",
    stackName: spec?.stackName ?? "",
    operation: spec?.type === "destroy" ? "destroy" : "up",
    ...(isMade && status?.plan && { plan: status.plan }),
    endedAt: parseTimestamp(endTimeOf(update)) ?? 0,
  };
}
