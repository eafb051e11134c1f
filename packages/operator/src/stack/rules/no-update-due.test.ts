import { expect, test } from "bun:test";
import { timestamp } from "@pko/kube";

import { cases, creating, failed, messageFor, now, resync, succeeded, viewOf } from "../testing/views.ts";
import { stackStatus } from "../status.ts";
import { planStack } from "./index.ts";

const reclaim = { workspaceReclaimPolicy: "Delete" } as const;
cases("with workspaceReclaimPolicy Delete, the Stack", [
  ["deletes its Workspace after an update", { spec: reclaim, last: succeeded() }, "deleteWorkspace: Ready"],
  ["is ready without a Workspace", { spec: reclaim, last: succeeded(), workspace: "absent" }, "none: Ready"],
  ["keeps its Workspace for a retry", { spec: reclaim, last: failed() }, "none: RetryingAfterFailure"],
  [
    "deletes its Workspace when it is out of retries",
    { spec: { ...reclaim, maxFailures: 1 }, last: failed() },
    "deleteWorkspace: RetriesExhausted",
  ],
]);

test("keeps a Workspace with workspaceReclaimPolicy Delete while another owner's Update runs in it", () => {
  const view = viewOf({ spec: { workspaceReclaimPolicy: "Delete" }, last: succeeded() });
  expect(planStack({ ...view, otherUpdate: "by-hand" })).toMatchObject({
    steps: [],
    outcome: { kind: "upToDate" },
    requeueAt: now + 10_000,
  });
});

const pending = succeeded({ outputsPending: true });
const readOutputs = { kind: "read", values: [], former: { data: {}, versions: {} } } as const;
const theirSecret = { kind: "Secret", namespace: "default", name: "web-1-stack-outputs" };
cases("with pending outputs, the Stack", [
  ["writes them if no update is due", { last: pending, outputs: readOutputs }, "writeOutputs: Ready"],
  [
    "deletes the Workspace first",
    { spec: { workspaceReclaimPolicy: "Delete" }, last: pending, outputs: readOutputs },
    "deleteWorkspace: unchanged",
  ],
  [
    "creates an update that is due first",
    { last: pending, outputs: readOutputs, generation: 2 },
    creating("up for generation"),
  ],
  ["reports that they are lost if the Update does not exist", { last: pending }, "none: OutputsLost"],
  [
    "reports that they are lost if the Secret of the Update does not exist",
    { last: pending, outputs: { kind: "lost", message: "Secret s does not exist." } },
    "none: OutputsLost",
  ],
  [
    "reports another owner's Secret that has the name of the Update's",
    { last: pending, outputs: { kind: "lost", message: "taken", occupant: theirSecret } },
    "none: OwnershipConflict",
  ],
]);

test("the message about lost outputs shows why, and how to get them", () => {
  const request = "set the annotation pulumi.com/reconciliation-request of the Stack to a new value.";
  const without = `The next update writes them; to request one now, ${request}`;
  expect(messageFor({ last: pending })).toBe(
    `The update web-last succeeded, but its outputs were not stored. Update web-last no longer exists. ${without}`,
  );
  expect(messageFor({ last: pending, outputs: { kind: "lost", message: "Secret s does not exist." } })).toBe(
    `The update web-last succeeded, but its outputs were not stored. Secret s does not exist. ${without}`,
  );
  expect(
    messageFor({ last: pending, outputs: { kind: "lost", message: "Secret s exists.", occupant: theirSecret } }),
  ).toBe(
    "The update web-last succeeded, but its outputs were not stored. Secret s exists. Delete or rename it; then, to request " +
      `an update that writes the outputs, ${request}`,
  );
});

test("checks again whether another owner's Secret still has the name of the Update's", () => {
  const outputs = { kind: "lost", message: "Secret s exists.", occupant: theirSecret } as const;
  expect(planStack(viewOf({ last: pending, outputs })).requeueAt).toBe(now + 15_000);
});

test("outputs that were written are no longer pending", () => {
  const view = viewOf({ last: pending, outputs: readOutputs });
  expect(stackStatus(view, planStack(view)).lastUpdate).toEqual(succeeded());
});

test("does not write pending outputs while another owner's Secret has the name for them", () => {
  const occupant = { kind: "Secret", namespace: "default", name: "web-outputs" };
  const view = {
    ...viewOf({ last: pending, outputs: readOutputs }),
    occupiedOutputs: { kind: "foreign", occupant } as const,
  };
  expect(planStack(view)).toMatchObject({
    steps: [],
    outcome: { reason: "OwnershipConflict" },
    requeueAt: now + 15_000,
  });
});

test("deletes the Workspace that was observed", () => {
  const view = viewOf({ spec: reclaim, last: succeeded() });
  expect(planStack(view).steps).toEqual([{ kind: "deleteWorkspace", uid: "uid-of-workspace" }]);
});

test("writes the outputs of the last update", () => {
  const view = viewOf({ last: pending, outputs: readOutputs });
  expect(planStack(view).steps).toEqual([{ kind: "writeOutputs", updateName: "web-last" }]);
});

test("requeues a Stack with lost outputs for its next resync", () => {
  const view = viewOf({ spec: resync(600), last: { ...pending, lastResyncTime: timestamp(now) } });
  expect(planStack(view).requeueAt).toBe(now + 600_000);
});
