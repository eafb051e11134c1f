import { expect, test } from "bun:test";

import { stackEventsFor } from "./events.ts";
import { planStack } from "./rules/index.ts";
import { stackStatus } from "./status.ts";
import { anUpdate, failed, now, succeeded, viewOf, type Setting } from "./testing/views.ts";
import type { StackView, UpdateFacts } from "./view.ts";

function reasons(setting: Setting, facts: Partial<StackView> = {}): string[] {
  const view = { ...viewOf(setting), ...facts };
  return stackEventsFor(view, planStack(view)).map(({ reason }) => reason);
}

const ended = (changes: Partial<UpdateFacts>): Setting => ({ updates: [anUpdate({ endedAt: now, ...changes })] });

test("reports the result of an update by its type and failure", () => {
  expect(reasons(ended({ state: "succeeded" }))).toEqual(["StackCreated"]);
  expect(reasons(ended({ state: "succeeded", type: "destroy" }))).toEqual(["StackDestroyed"]);
  expect(reasons(ended({ state: "failed" }))).toEqual(["StackUpdateFailure"]);
  expect(reasons(ended({ state: "failed", failure: "conflict" }))).toEqual(["StackUpdateConflictDetected"]);
  expect(reasons(ended({ state: "failed", failure: "stackNotFound" }))).toEqual(["StackNotFound"]);
  expect(reasons(ended({ state: "failed", failure: "timedOut" }))).toEqual(["StackUpdateTimedOut"]);
  expect(reasons(ended({ state: "failed", failure: "policyViolation" }))).toEqual(["StackPolicyViolated"]);
  expect(reasons(ended({ state: "failed", failure: "withdrawn" }))).toEqual([]);
});

test("reports what a successful update left to be done", () => {
  const view = viewOf(ended({ state: "succeeded", type: "destroy", warning: "the state has pending operations" }));
  const message = "The destroy web-now succeeded. Warning: the state has pending operations.";
  expect(stackEventsFor(view, planStack(view))).toEqual([{ type: "Normal", reason: "StackDestroyed", message }]);
});

test("reports an update that is not stopped after its timeout", () => {
  const stall = { reason: "UpdateNotStopped", message: "The operation exceeded its timeout." } as const;
  expect(reasons({ updates: [anUpdate({ startedAt: now, stall })] })).toEqual(["StackUpdateTimedOut"]);
});

test("reports outputs that are lost, and outputs that the API server rejected", () => {
  const succeededUpdate = ended({ state: "succeeded" });
  const lost = { kind: "lost", message: "Secret s does not exist." } as const;
  const both = ["StackCreated", "StackOutputRetrievalFailure"];
  expect(reasons({ ...succeededUpdate, outputs: lost })).toEqual(both);
  expect(
    reasons(succeededUpdate, { rejectedOutputs: { secretName: "web-outputs", explanation: "too large" } }),
  ).toEqual(both);
});

test("reports the cause of a stall once", () => {
  const setting: Setting = { spec: { stack: "" } };
  expect(reasons(setting)).toEqual(["StackConfigInvalid"]);
  const { outcome } = planStack(viewOf(setting));
  const message = "message" in outcome ? outcome.message : "";
  const stalled = { type: "Stalled", status: "True", reason: "SpecInvalid", message, lastTransitionTime: "" } as const;
  expect(reasons({ ...setting, status: { conditions: [stalled] } })).toEqual([]);
});

test("reports once that a protected Stack is being deleted", () => {
  const setting: Setting = { deleting: true, spec: { protect: true }, last: succeeded() };
  expect(reasons(setting)).toEqual(["StackProtected"]);
  const view = viewOf(setting);
  expect(reasons({ ...setting, status: stackStatus(view, planStack(view)) })).toEqual([]);
});

test("reports a started update and a deleted Workspace, and no retries", () => {
  expect(reasons({})).toEqual(["StackUpdateDetected"]);
  expect(reasons({ spec: { workspaceReclaimPolicy: "Delete" }, last: succeeded() })).toEqual(["WorkspaceDeleted"]);
  expect(reasons({ last: failed() })).toEqual([]);
});
