/** Stacks whose changes must be approved: planned, decided, and applied as planned. */
import { describe, expect, test } from "bun:test";
import { reconcileRequestAnnotation, type ApprovalRequest, type Stack, type StackSpec } from "@pko/api";
import { approvals, updates, type PolicyProbe } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { decide, userOf } from "../approvals/decide.ts";
import { condition, reasonOf, StackScene, testTimeoutMs } from "./scene.ts";

const always: Partial<StackSpec> = { approval: { required: "Always" } };

async function isAwaiting(scene: StackScene, not?: ApprovalRequest): Promise<ApprovalRequest> {
  const isNew = ({ status }: Stack): boolean => status?.approval?.updateName !== not?.updateName;
  const stack = await scene.becomes(
    "web",
    "awaiting an approval",
    (each) => reasonOf(each) === "AwaitingApproval" && isNew(each),
  );
  if (!stack.status?.approval) throw new Error("there is no request");
  return stack.status.approval;
}

async function awaitingStage(
  spec: Partial<StackSpec> = always,
): Promise<{ scene: StackScene; request: ApprovalRequest }> {
  const scene = await StackScene.open();
  await scene.program("program");
  await scene.stack("web", spec);
  return { scene, request: await isAwaiting(scene) };
}

describe("a Stack that requires approvals", () => {
  test(
    "waits for the approval of its plan, then applies exactly that plan",
    async () => {
      const { scene, request } = await awaitingStage();
      await using _ = scene;
      expect(scene.runs).toEqual(["preview@1"]);
      expect(request).toMatchObject({ state: "Pending", summary: "+ create bucket" });
      const waiting = await scene.get("web");
      expect(waiting.status?.lastUpdate).toBeUndefined();
      expect(condition(waiting, "Reconciling")?.message).toContain("kubectl pulumi approve web");
      await scene.fence();
      expect(scene.runs).toEqual(["preview@1"]);

      await decide(scene, request, { reason: "reviewed" });
      const { status } = await scene.isReady("web", "1");
      expect(scene.runs).toEqual(["preview@1", "up@1"]);
      expect(scene.simulator.runs[1]?.spec.applyPlan).toEqual({
        updateName: request.updateName,
        updateUid: request.updateUid,
        digest: request.digest,
        approvalName: `${request.updateName}-decision`,
      });
      expect(status?.approval).toMatchObject({
        state: "Approved",
        decidedBy: await userOf(scene.client),
        reason: "reviewed",
        appliedBy: scene.simulator.runs[1]?.name ?? "",
      });
      for (const reason of ["StackAwaitingApproval", "StackApproved", "StackCreated"]) await scene.events(reason);

      await scene.program("program", "two");
      const next = await isAwaiting(scene, request);
      await decide(scene, next);
      await scene.isReady("web", "2");
      expect(scene.runs).toEqual(["preview@1", "up@1", "preview@2", "up@2"]);
    },
    testTimeoutMs,
  );

  test(
    "is stalled by a rejection, until an update is requested",
    async () => {
      const { scene, request } = await awaitingStage();
      await using _ = scene;
      await decide(scene, request, { decision: "Reject", reason: "not today" });
      const rejected = await scene.becomes("web", "rejected", (stack) => reasonOf(stack) === "ApprovalRejected");
      expect(condition(rejected, "Stalled")?.message).toContain("not today");
      expect(rejected.status?.approval?.state).toBe("Rejected");
      // A later approval of the same plan does not count.
      await decide(scene, request, { name: "later" });
      await scene.fence();
      expect(scene.runs).toEqual(["preview@1"]);
      await scene.annotate("web", { [reconcileRequestAnnotation]: "again" });
      await isAwaiting(scene, request);
      expect(scene.runs).toEqual(["preview@1", "preview@1"]);
    },
    testTimeoutMs,
  );

  test(
    "makes a new plan when the plan expires, and ignores a late approval",
    async () => {
      const { scene, request } = await awaitingStage({ approval: { required: "Always", expiresAfterSeconds: 3600 } });
      await using _ = scene;
      scene.jump(3_500_000);
      await scene.fence();
      expect(scene.runs).toEqual(["preview@1"]);
      scene.jump(101_000);
      const next = await isAwaiting(scene, request);
      expect(scene.runs).toEqual(["preview@1", "preview@1"]);
      await scene.events("StackApprovalExpired");
      await decide(scene, request);
      await scene.fence();
      expect((await scene.get("web")).status?.approval).toEqual(next);
    },
    testTimeoutMs,
  );

  test(
    "makes a new plan when the program changes, and does not apply the former one",
    async () => {
      const { scene, request } = await awaitingStage();
      await using _ = scene;
      await scene.program("program", "two");
      const next = await isAwaiting(scene, request);
      await scene.events("StackApprovalSuperseded");
      await decide(scene, request);
      await scene.fence();
      expect(scene.runs).toEqual(["preview@1", "preview@2"]);
      await decide(scene, next);
      await scene.isReady("web", "2");
      expect(scene.simulator.runs.at(-1)?.spec.applyPlan?.updateName).toBe(next.updateName);
    },
    testTimeoutMs,
  );

  test(
    "needs a new approval after the plan failed halfway",
    async () => {
      const { scene, request } = await awaitingStage();
      await using _ = scene;
      scene.simulator.script.update = ({ spec }) =>
        spec?.type === "up"
          ? { end: "failed", message: "stopped after 1 change", errorClass: "planStopped" }
          : { end: "succeeded" };
      await decide(scene, request);
      await scene.becomes("web", "failed", ({ status }) => status?.lastUpdate?.failure === "planStopped");
      scene.jump(11_000);
      await isAwaiting(scene, request);
      expect(scene.runs).toEqual(["preview@1", "up@1", "preview@1"]);
    },
    testTimeoutMs,
  );

  test(
    "applies a plan without an approval if it is not destructive, and only that needs one",
    async () => {
      await using scene = await StackScene.open();
      await scene.program("program");
      await scene.stack("web", { approval: { required: "OnDestructiveChanges" } });
      const { status } = await scene.isReady("web", "1");
      expect(scene.runs).toEqual(["preview@1", "up@1"]);
      expect(status?.approval).toMatchObject({ state: "NotRequired", appliedBy: scene.simulator.runs[1]?.name ?? "" });
      scene.simulator.script.update = () => ({ end: "succeeded", plan: { destructive: true } });
      await scene.program("program", "two");
      await isAwaiting(scene, status?.approval);
    },
    testTimeoutMs,
  );

  test(
    "is destroyed only with an approval",
    async () => {
      const { scene, request } = await awaitingStage({ ...always, destroyOnFinalize: true });
      await using _ = scene;
      await decide(scene, request);
      const { status } = await scene.isReady("web", "1");
      await scene.delete("web");
      const destroy = await isAwaiting(scene, status?.approval);
      expect(scene.simulator.runs.at(-1)?.spec).toMatchObject({ type: "destroy", previewOnly: true, savePlan: true });
      await decide(scene, destroy);
      await scene.isDeleted("web");
      expect(scene.simulator.runs.at(-1)?.spec).toMatchObject({
        type: "destroy",
        applyPlan: { updateName: destroy.updateName },
      });
      await waitFor(async () => (await scene.client.list(updates, { namespace: scene.namespace })).items.length === 0);
    },
    testTimeoutMs,
  );

  test(
    "that was never deployed is deleted without an approval",
    async () => {
      const { scene } = await awaitingStage({ ...always, destroyOnFinalize: true });
      await using _ = scene;
      await scene.delete("web");
      await scene.isDeleted("web");
      expect(scene.runs).toEqual(["preview@1"]);
    },
    testTimeoutMs,
  );

  test(
    "continues after a restart of the operator",
    async () => {
      const { scene, request } = await awaitingStage();
      await using _ = scene;
      await scene.stop();
      await decide(scene, request);
      scene.start();
      await scene.isReady("web", "1");
      expect(scene.runs).toEqual(["preview@1", "up@1"]);
    },
    testTimeoutMs,
  );

  test(
    "starts nothing while the admission policy is missing, and continues when it is in force",
    async () => {
      let state: ReturnType<PolicyProbe["state"]> = { kind: "missing", policy: "approvals" };
      const followers = new Map<string, () => void>();
      const approvalPolicy: PolicyProbe = {
        state: () => state,
        follow: (user, { wake }) => void followers.set(user, wake),
        need: () => {
          if (state.kind === "missing") return;
          state = { kind: "inForce" };
          for (const wake of followers.values()) wake();
        },
        forget: (user) => void followers.delete(user),
        stop: () => undefined,
      };
      await using scene = await StackScene.open({ approvalPolicy });
      await scene.program("program");
      await scene.stack("web", always);
      await scene.becomes("web", "stalled", (stack) => reasonOf(stack) === "ApprovalPolicyMissing");
      await scene.fence();
      expect(scene.runs).toEqual([]);
      // It was in force a while ago: the Stack has it checked again.
      state = { kind: "unknown" };
      for (const wake of followers.values()) wake();
      await isAwaiting(scene);
      await scene.stack("web", {});
      await scene.isReady("web", "1");
      expect(followers.has(`${scene.namespace}/web`)).toBe(false);
    },
    testTimeoutMs,
  );

  test(
    "applies the plan only once, though two users approve it",
    async () => {
      const { scene, request } = await awaitingStage();
      await using _ = scene;
      await Promise.all([decide(scene, request, { name: "a" }), decide(scene, request, { name: "b" })]);
      await scene.isReady("web", "1");
      await scene.fence();
      expect(scene.runs).toEqual(["preview@1", "up@1"]);
      expect((await scene.client.list(approvals, { namespace: scene.namespace })).items).toHaveLength(2);
    },
    testTimeoutMs,
  );
});
