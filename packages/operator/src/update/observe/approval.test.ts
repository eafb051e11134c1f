import { describe, expect, test } from "bun:test";
import { approvalKind, stackKind, type Approval, type Stack, type Update, type Workspace } from "@pko/api";

import { workspaces } from "../../kinds.ts";
import { at, completed, noon, viewOf, withSpec, withStatus, type ViewTrait } from "../testing/views.ts";
import { approvalFacts, planRefOf, stackRefOf } from "./approval.ts";

const owner = {
  apiVersion: stackKind.apiVersion,
  kind: stackKind.kind,
  name: "web",
  uid: "stack-uid",
  controller: true,
};

const workspaceOf = (...ownerReferences: Workspace["metadata"]["ownerReferences"] & object): Workspace => ({
  apiVersion: workspaces.apiVersion,
  kind: workspaces.kind,
  metadata: { name: "web", namespace: "default", ownerReferences },
});

const stack: Stack = {
  apiVersion: stackKind.apiVersion,
  kind: stackKind.kind,
  metadata: { name: "web", namespace: "default", uid: "stack-uid" },
  spec: { stack: "dev", approval: { required: "Always" } },
};

const factsOf = (objects: Partial<Parameters<typeof approvalFacts>[0]>) =>
  approvalFacts({ workspace: workspaceOf(owner), stack, plan: undefined, approvals: [], least: "Never", ...objects });

describe("the Stack of a Workspace", () => {
  test("is its controller", () => {
    expect(stackRefOf(workspaceOf(owner))).toEqual({ namespace: "default", name: "web" });
    expect(factsOf({}).stack).toMatchObject({ state: "present", policy: { required: "Always" } });
  });

  test("requires what its WorkspaceClass requires, if that is more", () => {
    const spec = { stack: "dev", approval: { required: "OnDestructiveChanges" } } as const;
    const required = (own: Stack["spec"], least: "Never" | "OnDestructiveChanges" | "Always") => {
      const facts = factsOf({ stack: { ...stack, spec: own }, least }).stack;
      return facts?.state === "present" ? facts.policy?.required : facts;
    };
    expect(required(spec, "Never")).toBe("OnDestructiveChanges");
    expect(required(spec, "Always")).toBe("Always");
    expect(required({ stack: "dev" }, "OnDestructiveChanges")).toBe("OnDestructiveChanges");
    expect(required({ stack: "dev" }, "Never")).toBeUndefined();
    expect(required({ ...spec, approval: { required: "Always" } }, "OnDestructiveChanges")).toBe("Always");
  });

  test("is not another owner, nor a Stack of another API", () => {
    const others = [
      { ...owner, controller: false },
      { ...owner, apiVersion: "example.com/v1" },
      { ...owner, kind: "Deployment" },
    ];
    for (const other of others) {
      expect(factsOf({ workspace: workspaceOf(other), stack: undefined }).stack).toBeUndefined();
    }
    expect(stackRefOf(undefined)).toBeUndefined();
    expect(factsOf({ workspace: workspaceOf(), stack: undefined }).stack).toBeUndefined();
  });

  test("is the Stack of its name, even if someone removed or replaced the owner reference", () => {
    const required = { state: "present", policy: { required: "Always" } };
    expect(factsOf({ workspace: workspaceOf() }).stack).toMatchObject(required);
    expect(factsOf({ workspace: workspaceOf({ ...owner, kind: "Deployment" }) }).stack).toMatchObject(required);
    const other = { ...owner, name: "free", uid: "uid-of-free" };
    expect(factsOf({ workspace: workspaceOf(other) }).stack).toEqual({ state: "missing", name: "free" });
  });

  test("is missing if another Stack has its name now", () => {
    const other = { ...stack, metadata: { ...stack.metadata, uid: "other" } };
    expect(factsOf({ stack: other }).stack).toEqual({ state: "missing", name: "web" });
    expect(factsOf({ stack: undefined }).stack).toEqual({ state: "missing", name: "web" });
  });

  test("may be protected", () => {
    expect(factsOf({ stack: { ...stack, spec: { ...stack.spec, protect: true } } }).stack).toMatchObject({
      isProtected: true,
    });
  });

  test("may require no approvals", () => {
    expect(factsOf({ stack: { ...stack, spec: { stack: "dev" } } }).stack).toEqual({
      state: "present",
      name: "web",
      isProtected: false,
    });
  });
});

describe("the plan that an Update applies", () => {
  const plan = { digest: "d", secretNames: [], changes: true, destructive: true, unknownInputs: 0, summary: "" };
  const planUpdate = (type: string, ...traits: readonly ViewTrait[]): Update =>
    viewOf(completed(1000), withStatus({ plan }), withSpec({ type, savePlan: true }), ...traits).update;

  test("is in the same namespace", () => {
    const { update } = viewOf(withSpec({ applyPlan: { updateName: "web-plan", updateUid: "u", digest: "d" } }));
    expect(planRefOf(update)).toEqual({ namespace: "default", name: "web-plan" });
    expect(planRefOf(viewOf().update)).toBeUndefined();
  });

  test("is for an up if a preview made it, and for a destroy otherwise", () => {
    expect(factsOf({ plan: planUpdate("preview") }).plan).toMatchObject({
      operation: "up",
      plan,
      endedAt: noon - 1000,
    });
    expect(factsOf({ plan: planUpdate("destroy") }).plan).toMatchObject({ operation: "destroy", plan });
  });

  test("counts only if the Update was to keep it, and has succeeded", () => {
    const unfinished = withStatus({ conditions: [] });
    const failed = withStatus({
      conditions: ["Complete", "Failed"].map((type) => ({
        type,
        status: "True",
        reason: "UpdateFailed",
        message: "",
        lastTransitionTime: at(0),
      })),
    });
    for (const trait of [unfinished, failed, withSpec({ savePlan: false })]) {
      expect(factsOf({ plan: planUpdate("preview", trait) }).plan?.plan).toBeUndefined();
    }
  });
});

test("Approvals are compared without metadata that does not matter, in any order", () => {
  const approval = (name: string, more: object = {}): Approval => ({
    apiVersion: approvalKind.apiVersion,
    kind: approvalKind.kind,
    metadata: { name, uid: name, resourceVersion: "1", creationTimestamp: at(0), ...more },
    spec: { updateName: "u", updateUid: "u", digest: "d", decision: "Approve", decidedBy: "alice" },
  });
  const stored = factsOf({ approvals: [approval("b"), approval("a")] });
  const listed = factsOf({ approvals: [approval("a", { managedFields: [] }), approval("b", { labels: { a: "b" } })] });
  expect(stored).toEqual(listed);
});
