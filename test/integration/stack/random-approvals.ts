/**
 * Approvals in a random world: users decide about plans, rightly or wrongly, and Updates start as the rules of the Update
 * controller say. No Update may change resources without an approval where one is needed, and an Approval is used once.
 */
import { expect } from "bun:test";
import { approvalKind, type Approval, type ApprovalRequest, type Stack, type UpdateSpec } from "@pko/api";
import { timestamp } from "@pko/kube";

import { approvalPolicyOf, changesResources, needsApproval } from "../../../packages/operator/src/shared/approvals.ts";
import type { UpdateFacts } from "../../../packages/operator/src/stack/view.ts";
import { planUpdate } from "../../../packages/operator/src/update/rules/index.ts";
import type { Step } from "../../../packages/operator/src/update/steps.ts";
import {
  deletedAgo,
  viewOf,
  withFinalizer,
  withSpec,
  workspaceReady,
  type ViewTrait,
} from "../../../packages/operator/src/update/testing/views.ts";
import type { ApprovalFacts, PlanFacts } from "../../../packages/operator/src/update/view.ts";
import type { Chance } from "./chance.ts";

/** An Update of the Stack, and what its Stack does not know. */
export interface KnownUpdate extends UpdateFacts {
  readonly spec: UpdateSpec;
}

export interface Start {
  readonly stack: Stack;
  readonly update: KnownUpdate;
  readonly updates: readonly KnownUpdate[];
  readonly now: number;
}

type Started =
  | { readonly kind: "started" }
  /** Interrupted, after the Approval was used. */
  | { readonly kind: "interrupted" }
  | { readonly kind: "refused"; readonly message: string };

const alternatives = ["reject", "otherDigest", "otherUpdate", "used"] as const;

export class RandomApprovals {
  readonly #chance: Chance;
  #all: Approval[] = [];
  /** How often an Approval was used. */
  uses = 0;
  releases = 0;
  refusals = 0;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  /** Of the Update with the plan. */
  about(updateName: string | undefined): readonly Approval[] {
    return this.#all.filter(({ spec }) => spec.updateName === updateName);
  }

  /** A user decides about the plan. If everything is calm, the user approves it. */
  decide(request: ApprovalRequest, { now, isCalm }: { readonly now: number; readonly isCalm: boolean }): void {
    if (!isCalm && !this.#chance.is(0.5)) return;
    const decision = isCalm || this.#chance.is(0.6) ? "approve" : this.#chance.of(alternatives);
    const name = `approval-${this.#all.length}`;
    const { updateName, updateUid, digest } = request;
    this.#all.push({
      apiVersion: approvalKind.apiVersion,
      kind: approvalKind.kind,
      metadata: { name, uid: `uid-of-${name}`, resourceVersion: "1", creationTimestamp: timestamp(now) },
      spec: {
        updateName,
        updateUid: decision === "otherUpdate" ? "other" : updateUid,
        digest: decision === "otherDigest" ? "sha256:other" : digest,
        decision: decision === "reject" ? "Reject" : "Approve",
        decidedBy: "anna",
      },
      ...(decision === "used" && {
        status: { usedBy: { updateName: "theirs", updateUid: "theirs", time: timestamp(now) } },
      }),
    });
  }

  /** What becomes of an Update that could start. */
  start(start: Start): Started {
    const { steps, outcome } = planUpdate(viewOf(...this.#traits(start), workspaceReady));
    if (outcome.kind === "ended") {
      this.refusals++;
      return { kind: "refused", message: outcome.ending.message };
    }
    expect(outcome.kind).toBe("started");
    const isUsed = this.#use(start, steps);
    if (isUsed && this.#chance.is(0.5)) return { kind: "interrupted" };
    this.#audit(start);
    return { kind: "started" };
  }

  /** An Update is deleted before it starts. */
  withdraw(start: Start): void {
    const { steps } = planUpdate(viewOf(...this.#traits(start), deletedAgo(0)));
    if (!steps.some(({ kind }) => kind === "releaseApproval")) return;
    this.#all = this.#all.map((approval) => {
      if (approval.status?.usedBy?.updateUid !== start.update.uid) return approval;
      this.releases++;
      const { status: _, ...unused } = approval;
      return unused;
    });
  }

  #use({ update, now }: Start, steps: readonly Step[]): boolean {
    const step = steps.find(({ kind }) => kind === "useApproval");
    if (step?.kind !== "useApproval") return false;
    const { name, uid } = update;
    this.#all = this.#all.map((approval) => {
      if (approval.metadata.name !== step.approval.name) return approval;
      expect(approval.status?.usedBy).toBeUndefined();
      return { ...approval, status: { usedBy: { updateName: name, updateUid: uid, time: timestamp(now) } } };
    });
    this.uses++;
    return true;
  }

  /** Independent of the rules. */
  #audit({ stack, update, updates }: Start): void {
    const { applyPlan, type = "up" } = update.spec;
    const policy = approvalPolicyOf(stack);
    if (!policy || !changesResources(update.spec)) return;
    const plan = updates.find(({ uid }) => uid === applyPlan?.updateUid)?.plan;
    expect(plan?.digest).toBe(applyPlan?.digest ?? "none");
    if (!plan || !needsApproval(policy, plan, type)) return;
    const own = this.#all.filter(({ status }) => status?.usedBy?.updateUid === update.uid);
    expect(own.map(({ spec }) => [spec.decision, spec.digest, spec.updateUid])).toEqual([
      ["Approve", plan.digest, applyPlan?.updateUid ?? ""],
    ]);
    const others = this.about(applyPlan?.updateName).filter(({ spec }) => spec.digest === plan.digest);
    expect(others.some(({ spec }) => spec.decision === "Reject" && spec.updateUid === applyPlan?.updateUid)).toBe(
      false,
    );
  }

  #traits({ stack, update, updates, now }: Start): ViewTrait[] {
    const { name, uid, spec } = update;
    const isNow: ViewTrait = (view) => ({
      ...view,
      now,
      update: { ...view.update, metadata: { ...view.update.metadata, name, uid } },
      planContent: { kind: "read", content: "sealed" },
      approval: this.#facts({ stack, updates, spec }),
    });
    return [withSpec(spec), withFinalizer, isNow];
  }

  #facts({ stack, updates, spec }: Pick<Start, "stack" | "updates"> & Pick<KnownUpdate, "spec">): ApprovalFacts {
    const plan = updates.find((each) => each.name === spec.applyPlan?.updateName);
    const policy = approvalPolicyOf(stack);
    return {
      stack: { state: "present", name: "web", isProtected: false, ...(policy && { policy }) },
      ...(plan && { plan: planFacts(plan) }),
      approvals: this.about(spec.applyPlan?.updateName),
      least: "Never",
    };
  }
}

function planFacts({ name, uid, plan, spec, endedAt = 0 }: KnownUpdate): PlanFacts {
  return {
    name,
    uid,
    workspaceName: spec.workspaceName ?? "",
    stackName: spec.stackName ?? "",
    operation: spec.type === "destroy" ? "destroy" : "up",
    ...(plan && { plan }),
    endedAt,
  };
}
