import { expect, test } from "bun:test";
import { timestamp, type Occupied } from "@pko/kube";

import { unavailable } from "../../sources/source-view.ts";
import { stackStatus } from "../status.ts";
import { anUpdate, aTrigger, cases, failed, now, resync, succeeded, viewOf } from "../testing/views.ts";
import type { UpdateFacts } from "../view.ts";
import { planStack } from "./index.ts";

/** It records no trigger. */
function fromGoOperator(changes: Partial<UpdateFacts>): UpdateFacts {
  const { trigger: _, ...update } = anUpdate(changes);
  return update;
}
cases("when an update has ended, the Stack", [
  ["records its success", { updates: [anUpdate({ state: "succeeded", endedAt: now })] }, "recordResult: Ready"],
  [
    "records its failure",
    { updates: [anUpdate({ state: "failed", endedAt: now, message: "no" })] },
    "recordResult: RetryingAfterFailure",
  ],
  [
    "records the third failure in a row",
    { last: failed({ failures: 2 }), updates: [anUpdate({ state: "failed", endedAt: now })] },
    "recordResult: UpdateFailed",
  ],
  [
    "restarts the count of failures after another trigger",
    {
      last: failed({ failures: 2, lastAttemptedCommit: "other" }),
      updates: [anUpdate({ state: "failed", endedAt: now })],
    },
    "recordResult: RetryingAfterFailure",
  ],
  [
    "records a conflict",
    { updates: [anUpdate({ state: "failed", failure: "conflict", endedAt: now })] },
    "recordResult: UpdateConflict",
  ],
  [
    "records a conflict with retryOnUpdateConflict",
    {
      spec: { retryOnUpdateConflict: true },
      updates: [anUpdate({ state: "failed", failure: "conflict", endedAt: now })],
    },
    "recordResult: RetryingAfterFailure",
  ],
  [
    "records the failure of a preview",
    {
      spec: { preview: true },
      updates: [anUpdate({ state: "failed", type: "preview", trigger: aTrigger({ type: "preview" }), endedAt: now })],
    },
    "recordResult: PreviewFailed",
  ],
  [
    "records a success for an earlier spec, and continues",
    { generation: 2, updates: [anUpdate({ state: "succeeded", endedAt: now })] },
    "recordResult: StackProcessing",
  ],
  [
    "records its result though the spec became invalid",
    { spec: { stack: "" }, updates: [anUpdate({ state: "failed", endedAt: now })] },
    "recordResult: RetryingAfterFailure",
  ],
  [
    "records its result though the source is unavailable",
    { source: unavailable("auth", "no"), updates: [anUpdate({ state: "succeeded", endedAt: now })] },
    "recordResult: Ready",
  ],
  [
    "records its result while the Stack is being deleted",
    { deleting: true, spec: { destroyOnFinalize: true }, updates: [anUpdate({ state: "succeeded", endedAt: now })] },
    "recordResult: StackProcessing",
  ],
  [
    "records the failure of a destroy",
    {
      deleting: true,
      spec: { destroyOnFinalize: true },
      last: succeeded(),
      updates: [anUpdate({ state: "failed", type: "destroy", trigger: aTrigger({ type: "destroy" }), endedAt: now })],
    },
    "recordResult: RetryingAfterFailure",
  ],
  [
    "records the older of two first",
    {
      updates: [
        anUpdate({ name: "a", state: "failed", endedAt: now }),
        anUpdate({ name: "b", state: "succeeded", endedAt: now }),
      ],
      last: succeeded(),
    },
    "recordResult: RetryingAfterFailure",
  ],
  [
    "removes its finalizer after its result is recorded",
    { last: succeeded({ name: "web-now" }), updates: [anUpdate({ state: "succeeded", endedAt: now })] },
    "removeUpdateFinalizers, none: Ready",
  ],
  [
    "removes the finalizer of an Update that the Go operator recorded",
    {
      last: succeeded(),
      updates: [fromGoOperator({ name: "web-18beef", state: "failed", endedAt: now - 7_200_000 })],
    },
    "removeUpdateFinalizers, none: Ready",
  ],
  [
    "records the result of an Update that the Go operator did not record",
    {
      last: succeeded(),
      status: { currentUpdate: { name: "web-18beef", generation: 1, commit: "1" } },
      updates: [fromGoOperator({ name: "web-18beef", state: "failed", endedAt: now })],
    },
    "recordResult: RetryingAfterFailure",
  ],
  [
    "ignores an Update without the finalizer",
    { last: succeeded(), updates: [anUpdate({ state: "failed", hasFinalizer: false, endedAt: now })] },
    "none: Ready",
  ],
  [
    "restores a lost status from the latest Update",
    { updates: [anUpdate({ state: "succeeded", hasFinalizer: false, endedAt: now })] },
    "recordResult: Ready",
  ],
]);

const readOutputs = { kind: "read", values: [], former: { data: {}, versions: {} } } as const;
const theirSecret = { kind: "Secret", namespace: "default", name: "web-1-stack-outputs" };
cases("when an update has ended, and its outputs are lost, the Stack", [
  [
    "records its result though another owner's Secret has the name of the Update's",
    {
      updates: [anUpdate({ name: "web-1", state: "succeeded", hasFinalizer: true })],
      outputs: { kind: "lost", message: "taken", occupant: theirSecret },
    },
    "recordResult: OwnershipConflict",
  ],
  [
    "records its result though the Secret of the Update does not exist",
    {
      updates: [anUpdate({ name: "web-1", state: "succeeded", hasFinalizer: true })],
      outputs: { kind: "lost", message: "deleted" },
    },
    "recordResult: Ready",
  ],
]);

test("records the result, with pending outputs, if another owner's Secret has the name for them", () => {
  const view = viewOf({
    updates: [anUpdate({ name: "web-1", state: "succeeded", hasFinalizer: true })],
    outputs: readOutputs,
  });
  const occupant = { kind: "Secret", namespace: "default", name: "web-outputs" };
  const after = (occupiedOutputs: Occupied) => {
    const learned = { ...view, occupiedOutputs };
    const plan = planStack(learned);
    return { plan, status: stackStatus(learned, plan) };
  };
  const { plan, status } = after({ kind: "foreign", occupant });
  expect(status.lastUpdate).toMatchObject({ name: "web-1", state: "succeeded", outputsPending: true });
  expect(status.conditions?.[0]?.message).toBe(
    "The update web-1 succeeded, but its outputs were not written. Secret default/web-outputs (without an owner) already " +
      "exists and was not created for Stack web, so nothing was changed. Delete or rename it, or use another name for the " +
      "Stack; this is checked again automatically.",
  );
  expect(plan.requeueAt).toBe(view.now + 15_000);
  expect(after({ kind: "former", occupant }).status.conditions?.[1]?.reason).toBe("StackProcessing");
});

test("removes the finalizer of Updates of a deleted Stack of the same name before anything else", () => {
  const orphan = { apiVersion: "auto.pulumi.com/v1alpha1", kind: "Update", metadata: { name: "web-0" } };
  const view = { ...viewOf({ updates: [anUpdate({ state: "succeeded", endedAt: now })] }), orphans: [orphan] };
  expect(planStack(view).steps).toEqual([{ kind: "removeOrphanFinalizers", updates: [orphan] }]);
});

test("shows the next resync with the result that it follows", () => {
  const updates = [anUpdate({ state: "succeeded", endedAt: now - 5000 })];
  const resynced = viewOf({ spec: resync(600), updates });
  const next = stackStatus(resynced, planStack(resynced)).next;
  expect(next).toEqual({ what: "the periodic resync", time: timestamp(now - 5000 + 600_000) });
  const once = viewOf({ updates });
  expect(stackStatus(once, planStack(once)).next).toBeUndefined();
});
