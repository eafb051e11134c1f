import { describe, expect, test } from "bun:test";
import { approvalKind, stackKind, type Approval, type StackSpec } from "@pko/api";

import { approvalPolicyOf, approvalsOf, changesResources, decisionIn, needsApproval } from "./approvals.ts";

const at = (second: number): string => new Date(Date.UTC(2030, 0, 1, 12, 0, second)).toISOString();
const plan = { updateName: "web-plan", updateUid: "uid", digest: "sha256:a" };

const approval = (name: string, second: number, spec: Partial<Approval["spec"]> = {}): Approval => ({
  apiVersion: approvalKind.apiVersion,
  kind: approvalKind.kind,
  metadata: { name, namespace: "team", creationTimestamp: at(second) },
  spec: { ...plan, decision: "Approve", decidedBy: "alice", ...spec },
});

describe("the Approvals of a plan", () => {
  const expiresAt = Date.parse(at(30));
  const names = (...all: readonly Approval[]): string[] =>
    approvalsOf(plan, expiresAt, all).map(({ metadata }) => metadata.name ?? "");

  test("are those of exactly this plan, the oldest first", () => {
    expect(
      names(
        approval("late", 20),
        approval("other-update", 1, { updateName: "web-other" }),
        approval("former-update", 1, { updateUid: "former" }),
        approval("other-plan", 1, { digest: "sha256:b" }),
        approval("early", 10),
      ),
    ).toEqual(["early", "late"]);
  });

  test("are those that were created before it expired", () => {
    expect(names(approval("in-time", 29), approval("too-late", 30))).toEqual(["in-time"]);
  });

  test("are ordered by name if they were created in the same second", () => {
    expect(names(approval("b", 1), approval("a", 1))).toEqual(["a", "b"]);
  });

  test("decide by the oldest one, except that a rejection wins", () => {
    const [first, second] = [approval("first", 1), approval("second", 2)];
    const rejected = approval("no", 3, { decision: "Reject" });
    expect(decisionIn([first, second])).toBe(first);
    expect(decisionIn([first, rejected])).toBe(rejected);
    expect(decisionIn([])).toBeUndefined();
  });
});

describe("a plan needs an approval", () => {
  const table = [
    ["if it changes something and approvals are always required", "Always", { changes: true }, "up", true],
    ["not if it changes nothing", "Always", { changes: false }, "up", false],
    ["if it is destructive", "OnDestructiveChanges", { changes: true, destructive: true }, "up", true],
    ["not if only destructive plans need one", "OnDestructiveChanges", { changes: true }, "up", false],
    ["if it destroys something", "OnDestructiveChanges", { changes: true }, "destroy", true],
    ["not if there is nothing to destroy", "OnDestructiveChanges", { changes: false }, "destroy", false],
  ] as const;
  for (const [sentence, required, changes, type, expected] of table) {
    test(sentence, () => expect(needsApproval({ required }, { destructive: false, ...changes }, type)).toBe(expected));
  }
});

test("an up and a destroy change resources; previews and refreshes do not", () => {
  const changing = [
    { type: "up" },
    { type: "destroy" },
    { type: "preview" },
    { type: "refresh" },
    { type: "destroy", previewOnly: true },
    {},
  ].map((spec) => changesResources(spec as Parameters<typeof changesResources>[0]));
  expect(changing).toEqual([true, true, false, false, false, false]);
});

test("the policy of a Stack is known even if the rest of its spec is invalid or missing", () => {
  const policyOf = (spec: Partial<StackSpec> | undefined) =>
    approvalPolicyOf({ ...stackKind, metadata: {}, spec: spec as StackSpec } as never);
  expect(policyOf(undefined)).toBeUndefined();
  expect(policyOf({})).toBeUndefined();
  expect(policyOf({ approval: { required: "Never" } })).toBeUndefined();
  expect(policyOf({ approval: { required: "Always" } })).toEqual({ required: "Always", expiresAfterMs: 86_400_000 });
});
