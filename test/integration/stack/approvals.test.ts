/** Stacks whose changes must be approved: planned, decided, and applied as planned. */
import { describe, expect, test } from "bun:test";
import { reconcileRequestAnnotation, type ApprovalRequest, type Stack, type StackSpec } from "@pko/api";
import { approvals, updates, type PolicyProbe } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { decide, userOf } from "../approvals/decide.ts";
import { condition, reasonOf, Stage, testTimeoutMs } from "./harness.ts";

const always: Partial<StackSpec> = { approval: { required: "Always" } };

async function isAwaiting(stage: Stage, not?: ApprovalRequest): Promise<ApprovalRequest> {
  const isNew = ({ status }: Stack): boolean => status?.approval?.updateName !== not?.updateName;
  const stack = await stage.becomes(
    "web",
    "awaiting an approval",
    (each) => reasonOf(each) === "AwaitingApproval" && isNew(each),
  );
  if (!stack.status?.approval) throw new Error("there is no request");
  return stack.status.approval;
}

const events = async (stage: Stage): Promise<string[]> => {
  const { items } = await stage.client.list(
    { apiVersion: "v1", kind: "Event", plural: "events", namespaced: true },
    { namespace: stage.namespace },
  );
  return items.flatMap((event) => ("reason" in event ? [String(event.reason)] : []));
};

const hasEvent = async (stage: Stage, reason: string): Promise<void> => {
  await waitFor(async () => (await events(stage)).includes(reason), { what: `the event ${reason}` });
};

async function awaitingStage(spec: Partial<StackSpec> = always): Promise<{ stage: Stage; request: ApprovalRequest }> {
  const stage = await Stage.set();
  await stage.program("program");
  await stage.stack("web", spec);
  return { stage, request: await isAwaiting(stage) };
}

describe("a Stack that requires approvals", () => {
  test(
    "waits for the approval of its plan, then applies exactly that plan",
    async () => {
      const { stage, request } = await awaitingStage();
      await using _ = stage;
      expect(stage.runs).toEqual(["preview@1"]);
      expect(request).toMatchObject({ state: "Pending", summary: "+ create bucket" });
      const waiting = await stage.get("web");
      expect(waiting.status?.lastUpdate).toBeUndefined();
      expect(condition(waiting, "Reconciling")?.message).toContain("kubectl pulumi approve web");
      await stage.fence();
      expect(stage.runs).toEqual(["preview@1"]);

      await decide(stage, request, { reason: "reviewed" });
      const { status } = await stage.isReady("web", "1");
      expect(stage.runs).toEqual(["preview@1", "up@1"]);
      expect(stage.simulator.runs[1]?.spec.applyPlan).toEqual({
        updateName: request.updateName,
        updateUid: request.updateUid,
        digest: request.digest,
        approvalName: `${request.updateName}-decision`,
      });
      expect(status?.approval).toMatchObject({
        state: "Approved",
        decidedBy: await userOf(stage.client),
        reason: "reviewed",
        appliedBy: stage.simulator.runs[1]?.name ?? "",
      });
      for (const reason of ["StackAwaitingApproval", "StackApproved", "StackCreated"]) await hasEvent(stage, reason);

      await stage.program("program", "two");
      const next = await isAwaiting(stage, request);
      await decide(stage, next);
      await stage.isReady("web", "2");
      expect(stage.runs).toEqual(["preview@1", "up@1", "preview@2", "up@2"]);
    },
    testTimeoutMs,
  );

  test(
    "is stalled by a rejection, until an update is requested",
    async () => {
      const { stage, request } = await awaitingStage();
      await using _ = stage;
      await decide(stage, request, { decision: "Reject", reason: "not today" });
      const rejected = await stage.becomes("web", "rejected", (stack) => reasonOf(stack) === "ApprovalRejected");
      expect(condition(rejected, "Stalled")?.message).toContain("not today");
      expect(rejected.status?.approval?.state).toBe("Rejected");
      // A later approval of the same plan does not count.
      await decide(stage, request, { name: "later" });
      await stage.fence();
      expect(stage.runs).toEqual(["preview@1"]);
      await stage.annotate("web", { [reconcileRequestAnnotation]: "again" });
      await isAwaiting(stage, request);
      expect(stage.runs).toEqual(["preview@1", "preview@1"]);
    },
    testTimeoutMs,
  );

  test(
    "makes a new plan when the plan expires, and ignores a late approval",
    async () => {
      const { stage, request } = await awaitingStage({ approval: { required: "Always", expiresAfterSeconds: 600 } });
      await using _ = stage;
      stage.jump(590_000);
      await stage.fence();
      expect(stage.runs).toEqual(["preview@1"]);
      stage.jump(11_000);
      const next = await isAwaiting(stage, request);
      expect(stage.runs).toEqual(["preview@1", "preview@1"]);
      await hasEvent(stage, "StackApprovalExpired");
      await decide(stage, request);
      await stage.fence();
      expect((await stage.get("web")).status?.approval).toEqual(next);
    },
    testTimeoutMs,
  );

  test(
    "makes a new plan when the program changes, and does not apply the former one",
    async () => {
      const { stage, request } = await awaitingStage();
      await using _ = stage;
      await stage.program("program", "two");
      const next = await isAwaiting(stage, request);
      await hasEvent(stage, "StackApprovalSuperseded");
      await decide(stage, request);
      await stage.fence();
      expect(stage.runs).toEqual(["preview@1", "preview@2"]);
      await decide(stage, next);
      await stage.isReady("web", "2");
      expect(stage.simulator.runs.at(-1)?.spec.applyPlan?.updateName).toBe(next.updateName);
    },
    testTimeoutMs,
  );

  test(
    "needs a new approval after the plan failed halfway",
    async () => {
      const { stage, request } = await awaitingStage();
      await using _ = stage;
      stage.simulator.script.update = ({ spec }) =>
        spec?.type === "up"
          ? { end: "failed", message: "stopped after 1 change", errorClass: "planStopped" }
          : { end: "succeeded" };
      await decide(stage, request);
      await stage.becomes("web", "failed", ({ status }) => status?.lastUpdate?.failure === "planStopped");
      stage.jump(11_000);
      await isAwaiting(stage, request);
      expect(stage.runs).toEqual(["preview@1", "up@1", "preview@1"]);
    },
    testTimeoutMs,
  );

  test(
    "applies a plan without an approval if it is not destructive, and only that needs one",
    async () => {
      await using stage = await Stage.set();
      await stage.program("program");
      await stage.stack("web", { approval: { required: "OnDestructiveChanges" } });
      const { status } = await stage.isReady("web", "1");
      expect(stage.runs).toEqual(["preview@1", "up@1"]);
      expect(status?.approval).toMatchObject({ state: "NotRequired", appliedBy: stage.simulator.runs[1]?.name ?? "" });
      stage.simulator.script.update = () => ({ end: "succeeded", plan: { destructive: true } });
      await stage.program("program", "two");
      await isAwaiting(stage, status?.approval);
    },
    testTimeoutMs,
  );

  test(
    "is destroyed only with an approval",
    async () => {
      const { stage, request } = await awaitingStage({ ...always, destroyOnFinalize: true });
      await using _ = stage;
      await decide(stage, request);
      const { status } = await stage.isReady("web", "1");
      await stage.delete("web");
      const destroy = await isAwaiting(stage, status?.approval);
      expect(stage.simulator.runs.at(-1)?.spec).toMatchObject({ type: "destroy", previewOnly: true, savePlan: true });
      await decide(stage, destroy);
      await stage.isDeleted("web");
      expect(stage.simulator.runs.at(-1)?.spec).toMatchObject({
        type: "destroy",
        applyPlan: { updateName: destroy.updateName },
      });
      await waitFor(async () => (await stage.client.list(updates, { namespace: stage.namespace })).items.length === 0);
    },
    testTimeoutMs,
  );

  test(
    "that was never deployed is deleted without an approval",
    async () => {
      const { stage } = await awaitingStage({ ...always, destroyOnFinalize: true });
      await using _ = stage;
      await stage.delete("web");
      await stage.isDeleted("web");
      expect(stage.runs).toEqual(["preview@1"]);
    },
    testTimeoutMs,
  );

  test(
    "continues after a restart of the operator",
    async () => {
      const { stage, request } = await awaitingStage();
      await using _ = stage;
      await stage.stop();
      await decide(stage, request);
      stage.start();
      await stage.isReady("web", "1");
      expect(stage.runs).toEqual(["preview@1", "up@1"]);
    },
    testTimeoutMs,
  );

  test(
    "starts nothing while the admission policy is missing, and continues when it is in force",
    async () => {
      let state: ReturnType<PolicyProbe["state"]> = { kind: "missing" };
      const followers = new Map<string, () => void>();
      const approvalPolicy: PolicyProbe = {
        state: () => state,
        follow: (user, { wake }) => void followers.set(user, wake),
        forget: (user) => void followers.delete(user),
        stop: () => undefined,
      };
      await using stage = await Stage.set({ approvalPolicy });
      await stage.program("program");
      await stage.stack("web", always);
      await stage.becomes("web", "stalled", (stack) => reasonOf(stack) === "ApprovalPolicyMissing");
      await stage.fence();
      expect(stage.runs).toEqual([]);
      state = { kind: "inForce" };
      for (const wake of followers.values()) wake();
      await isAwaiting(stage);
      await stage.stack("web", {});
      await stage.isReady("web", "1");
      expect(followers.has(`${stage.namespace}/web`)).toBe(false);
    },
    testTimeoutMs,
  );

  test(
    "applies the plan only once, though two users approve it",
    async () => {
      const { stage, request } = await awaitingStage();
      await using _ = stage;
      await Promise.all([decide(stage, request, { name: "a" }), decide(stage, request, { name: "b" })]);
      await stage.isReady("web", "1");
      await stage.fence();
      expect(stage.runs).toEqual(["preview@1", "up@1"]);
      expect((await stage.client.list(approvals, { namespace: stage.namespace })).items).toHaveLength(2);
    },
    testTimeoutMs,
  );
});
