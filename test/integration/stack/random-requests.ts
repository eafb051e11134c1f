/** Random requests for approvals, and Approvals that match them or not. */
import { approvalKind, type Approval, type ApprovalRequest, type UpdatePlan } from "@pko/api";
import { timestamp } from "@pko/kube";

import { serializeTrigger } from "../../../packages/operator/src/stack/history/trigger.ts";
import {
  aTrigger,
  anUpdate,
  now,
  succeeded,
  type Setting,
} from "../../../packages/operator/src/stack/testing/views.ts";
import type { Step } from "../../../packages/operator/src/stack/steps.ts";
import type { StackView, UpdateFacts } from "../../../packages/operator/src/stack/view.ts";
import { approvalPolicies } from "./random-world.ts";
import type { Chance } from "./chance.ts";

const digest = "sha256:plan";
const hour = 3_600_000;

/** With a plan that may be missing, expired, or decided about in any way. */
export function withRequest(chance: Chance, given: Setting): Setting {
  const setting = chance.is(0.8) ? dueUpdate(given) : given;
  const type = setting.deleting ? "destroy" : "up";
  const expiresAt = timestamp(now + chance.of([-hour, hour, hour, hour]));
  const request: ApprovalRequest = {
    state: chance.of(["Pending", "Pending", "Approved", "NotRequired", "Rejected", "Superseded"]),
    updateName: "web-plan",
    updateUid: "uid-of-plan",
    digest,
    trigger: serializeTrigger(aTrigger({ type, generation: setting.generation ?? 1 })),
    summary: "- delete bucket",
    expiresAt,
    ...(chance.is(0.1) && { appliedBy: chance.of(["web-last", "web-a"]) }),
  };
  return {
    ...setting,
    spec: { ...setting.spec, approval: chance.of(approvalPolicies) },
    status: { ...setting.status, approval: request },
    updates: [...(setting.updates ?? []).filter(() => chance.is(0.1)), ...plans(chance)],
    approvals: Array.from({ length: chance.of([0, 1, 1, 2]) }, (_, index) => randomApproval(chance, index)),
  };
}

/** Nothing but the approval delays the update. */
function dueUpdate({ spec, status, deleting, generation, updates }: Setting): Setting {
  return {
    ...(spec && { spec }),
    ...(status && { status }),
    ...(deleting !== undefined && { deleting }),
    ...(deleting && { last: succeeded() }),
    ...(generation !== undefined && { generation }),
    ...(updates && { updates }),
  };
}

function plans(chance: Chance): UpdateFacts[] {
  if (chance.is(0.1)) return [];
  const plan: UpdatePlan = {
    digest: chance.of([digest, digest, digest, "sha256:other"]),
    secretNames: [],
    changes: chance.is(0.9),
    destructive: chance.is(0.5),
    unknownInputs: 0,
    summary: "- delete bucket",
  };
  const facts = { name: "web-plan", uid: "uid-of-plan", type: "preview", isPlan: true, plan, endedAt: now - hour };
  return [anUpdate({ ...facts, state: "succeeded", deleting: chance.is(0.1), hasFinalizer: chance.is(0.2) })];
}

function randomApproval(chance: Chance, index: number): Approval {
  const usedBy = { updateName: "theirs", updateUid: "theirs", time: timestamp(now) };
  return {
    apiVersion: approvalKind.apiVersion,
    kind: approvalKind.kind,
    metadata: { name: `approval-${index}`, creationTimestamp: timestamp(now + chance.of([-60_000, 2 * hour])) },
    spec: {
      updateName: "web-plan",
      updateUid: chance.of(["uid-of-plan", "uid-of-plan", "uid-of-plan", "other"]),
      digest: chance.of([digest, digest, digest, "sha256:other"]),
      decision: chance.of(["Approve", "Approve", "Reject"]),
      decidedBy: "anna",
    },
    ...(chance.is(0.2) && { status: { usedBy } }),
  };
}

type Creation = Extract<Step, { kind: "createUpdate" }>;

/** Whether the Update may change resources. */
export const changesSomething = ({ update: { spec } }: Creation): boolean =>
  (spec?.type === "up" || spec?.type === "destroy") && spec.previewOnly !== true;

/** Independent of the rules: whether the plan that the Update applies is kept, unexpired, and approved if that is needed. */
export function isCleared({ updates, approvals, stack, now }: StackView, { update }: Creation): boolean {
  const { applyPlan } = update.spec ?? {};
  const { approval: request } = stack.status ?? {};
  const isSame = (spec: { readonly updateUid: string; readonly digest: string }): boolean =>
    spec.updateUid === applyPlan?.updateUid && spec.digest === applyPlan.digest;
  const isKept = updates.some(({ uid, plan }) => isSame({ updateUid: uid, digest: plan?.digest ?? "none" }));
  if (!applyPlan || !request || !isKept || Date.parse(request.expiresAt) <= now) return false;
  const matching = approvals.filter(
    ({ spec, metadata }) =>
      isSame(spec) && Date.parse(metadata.creationTimestamp ?? "") < Date.parse(request.expiresAt),
  );
  if (request.state === "NotRequired") return true;
  return matching.length > 0 && matching.every(({ spec }) => spec.decision === "Approve");
}
