import { expect, test } from "bun:test";

import { unavailable } from "../../sources/source-view.ts";
import {
  ago,
  anUpdate,
  aTrigger,
  cases,
  creating,
  failed,
  messageFor,
  now,
  program,
  succeeded,
  viewOf,
} from "../testing/views.ts";
import { planStack } from "./index.ts";

const stuck = anUpdate({
  startedAt: now - 1000,
  stall: { reason: "NodeLost", message: "Pod web-workspace-0 on node worker-2 has not responded." },
});
const notStopped = anUpdate({
  startedAt: now - 1000,
  stall: { reason: "UpdateNotStopped", message: "The operation exceeded its timeout." },
});
cases("an agent that does not stop an update", [
  ["stalls the Stack", { updates: [notStopped] }, "none: UpdateNotStopped"],
  ["stalls a Stack that is being deleted", { deleting: true, updates: [notStopped] }, "none: UpdateNotStopped"],
]);
cases("a pod whose node may be lost", [
  ["an update that is stuck stalls the Stack", { updates: [stuck] }, "none: NodeLost"],
  ["a stuck update stalls a Stack that is being deleted", { deleting: true, updates: [stuck] }, "none: NodeLost"],
  [
    "a stuck update stalls a Stack whose resources are about to be destroyed",
    { deleting: true, spec: { destroyOnFinalize: true }, updates: [stuck] },
    "none: NodeLost",
  ],
  [
    "a stuck update stalls the Stack also while it is being cancelled",
    { cancelled: "web-now", updates: [{ ...stuck, deleting: true }] },
    "none: NodeLost",
  ],
  [
    "a Workspace that cannot get another pod stalls the Stack",
    { request: "now", workspace: { failed: "NodeLost" } },
    "none: NodeLost",
  ],
]);

cases("while an update runs, the Stack", [
  ["waits for it", { updates: [anUpdate()] }, "none: StackProcessing"],
  ["waits for it though the spec changed", { generation: 2, updates: [anUpdate()] }, "none: StackProcessing"],
  [
    "waits for it though the spec became invalid",
    { spec: { stack: "" }, updates: [anUpdate({ startedAt: now })] },
    "none: StackProcessing",
  ],
  [
    "waits for it though the source no longer exists",
    { source: unavailable("notFound", "there is no Program program"), updates: [anUpdate()] },
    "none: StackProcessing",
  ],
  ["waits for it though a reconcile was requested", { request: "x", updates: [anUpdate()] }, "none: StackProcessing"],
  [
    "waits for it though the last update failed long ago",
    { last: failed({ lastResyncTime: ago(9999) }), updates: [anUpdate()] },
    "none: StackProcessing",
  ],
  [
    "waits for it though its Workspace is being deleted",
    { workspace: "deleting", updates: [anUpdate({ startedAt: now })] },
    "none: StackProcessing",
  ],
  [
    "waits for it before the destroy",
    { deleting: true, spec: { destroyOnFinalize: true }, updates: [anUpdate({ startedAt: now })] },
    "none: StackProcessing",
  ],
  [
    "removes the finalizer of the previous Update",
    {
      last: succeeded({ name: "web-before" }),
      updates: [anUpdate({ name: "web-before", state: "succeeded" }), anUpdate()],
    },
    "removeUpdateFinalizers, none: StackProcessing",
  ],
]);

const installing = { failed: "InstallationFailed" };
const { trigger: _, ...untriggered } = anUpdate();
cases("an update that has not started", [
  ["waits for its Workspace", { workspace: "preparing", updates: [anUpdate()] }, "none: StackProcessing"],
  ["reports that its Workspace failed", { workspace: installing, updates: [anUpdate()] }, "none: WorkspaceFailed"],
  [
    "is withdrawn if its Workspace does not exist",
    { workspace: "absent", updates: [anUpdate()] },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "is withdrawn if its Workspace is being deleted",
    { workspace: "deleting", updates: [anUpdate()] },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "is withdrawn if its Workspace failed and there is a new revision",
    { workspace: installing, source: program(2), updates: [anUpdate()] },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "is withdrawn if its Workspace failed and the spec changed",
    { workspace: installing, generation: 2, updates: [anUpdate()] },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "is withdrawn if its Workspace failed and a reconcile was requested",
    { workspace: installing, request: "x", updates: [anUpdate()] },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "is withdrawn if its Workspace is not ready and the spec changed",
    { workspace: "preparing", generation: 2, updates: [anUpdate()] },
    "withdrawUpdate: StackProcessing",
  ],
  ["is not withdrawn if its Workspace is ready", { generation: 2, updates: [anUpdate()] }, "none: StackProcessing"],
  [
    "is withdrawn if the Stack is deleted",
    { deleting: true, spec: { destroyOnFinalize: true }, updates: [anUpdate()] },
    "withdrawUpdate: StackProcessing",
  ],
  ["is withdrawn only once", { workspace: "absent", updates: [anUpdate({ deleting: true })] }, "none: StackProcessing"],
  [
    "waits for a Workspace that failed, as a destroy",
    {
      deleting: true,
      spec: { destroyOnFinalize: true },
      workspace: installing,
      updates: [anUpdate({ type: "destroy" })],
    },
    "none: WorkspaceFailed",
  ],
  [
    "is withdrawn if its Workspace is not ready and the spec changed, as a destroy",
    {
      deleting: true,
      generation: 2,
      spec: { destroyOnFinalize: true },
      workspace: "preparing",
      updates: [anUpdate({ type: "destroy", trigger: aTrigger({ type: "destroy" }) })],
    },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "is withdrawn if its Workspace does not exist, as a destroy",
    {
      deleting: true,
      spec: { destroyOnFinalize: true },
      workspace: "absent",
      updates: [anUpdate({ type: "destroy" })],
    },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "is not withdrawn if the Go operator created it, because its trigger is unknown",
    { generation: 2, workspace: "preparing", updates: [untriggered] },
    "none: StackProcessing",
  ],
  [
    "is not withdrawn while the source is unavailable, because its trigger cannot be compared",
    {
      generation: 2,
      workspace: "preparing",
      source: unavailable("notFound", "there is no Program program"),
      updates: [anUpdate()],
    },
    "none: StackProcessing",
  ],
  [
    "is not withdrawn for a new revision, as a destroy",
    {
      deleting: true,
      spec: { destroyOnFinalize: true },
      workspace: "preparing",
      source: program(2),
      updates: [anUpdate({ type: "destroy", trigger: aTrigger({ type: "destroy" }) })],
    },
    "none: StackProcessing",
  ],
  [
    "is not withdrawn after it has started",
    { workspace: "absent", updates: [anUpdate({ startedAt: now })] },
    "none: StackProcessing",
  ],
]);

test("the message about a failed Workspace names it", () => {
  expect(messageFor({ workspace: installing, updates: [anUpdate()] })).toBe(
    "Workspace web cannot be prepared: npm: 404",
  );
});

test("the message about the running update of a suspended Stack that is deleted shows that no destroy follows", () => {
  const setting = { deleting: true, updates: [anUpdate({ startedAt: now })] };
  const suspended = { destroyOnFinalize: true, suspend: true };
  expect(messageFor({ ...setting, spec: suspended })).toContain("nothing starts when it ends");
  const resumed = { destroyOnFinalize: true };
  expect(messageFor({ ...setting, spec: resumed })).toContain("the resources will be destroyed when it ends");
});

test("withdraws an Update that has not started only in the observed version, and a cancelled one in any version", () => {
  const waiting = anUpdate({ resourceVersion: "12" });
  const { name, uid } = waiting;
  const superseded = planStack(viewOf({ workspace: "absent", updates: [waiting] }));
  expect(superseded.steps).toEqual([{ kind: "withdrawUpdate", name, uid, resourceVersion: "12" }]);
  const cancelled = planStack(viewOf({ cancelled: name, updates: [waiting] }));
  expect(cancelled.steps).toEqual([{ kind: "withdrawUpdate", name, uid }]);
});

const deleted = { deleting: true, spec: { destroyOnFinalize: true } };
cases("an update with a cancellation request", [
  ["is withdrawn", { cancelled: "web-now", updates: [anUpdate()] }, "withdrawUpdate: StackProcessing"],
  [
    "is withdrawn after it has started",
    { cancelled: "web-now", updates: [anUpdate({ startedAt: now })] },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "is withdrawn only once",
    { cancelled: "web-now", updates: [anUpdate({ startedAt: now, deleting: true })] },
    "none: StackProcessing",
  ],
  [
    "is not withdrawn if the request names another Update",
    { cancelled: "web-last", updates: [anUpdate()] },
    "none: StackProcessing",
  ],
  [
    "stalls the Stack when it has ended",
    { cancelled: "web-now", updates: [anUpdate({ state: "failed", endedAt: now })] },
    "recordResult: UpdateFailed",
  ],
  [
    "makes the Stack ready if it succeeded nevertheless",
    { cancelled: "web-now", updates: [anUpdate({ state: "succeeded", endedAt: now })] },
    "recordResult: Ready",
  ],
  ["is not retried", { cancelled: "web-last", last: failed({ lastResyncTime: ago(9999) }) }, "none: UpdateFailed"],
  ["is retried if the request is removed", { last: failed({ lastResyncTime: ago(9999) }) }, creating("up for retry")],
  [
    "is followed by another if a reconcile is requested",
    { cancelled: "web-last", last: failed(), request: "x" },
    creating("up for request"),
  ],
  [
    "is followed by another if the spec changes",
    { cancelled: "web-last", last: failed(), generation: 2 },
    creating("up for generation"),
  ],
  [
    "is followed by another if the source changes",
    { cancelled: "web-last", last: failed(), source: program(2) },
    creating("up for revision"),
  ],
  [
    "is followed by another at the next resync",
    {
      cancelled: "web-last",
      spec: { continueResyncOnCommitMatch: true, resyncFrequencySeconds: 60 },
      last: failed({ lastResyncTime: ago(60) }),
    },
    creating("up for resync"),
  ],
  [
    "is not retried, as a destroy",
    { ...deleted, cancelled: "web-last", last: failed({ type: "destroy", lastResyncTime: ago(9999) }) },
    "none: UpdateFailed",
  ],
  [
    "is followed by another if a reconcile is requested, as a destroy",
    { ...deleted, cancelled: "web-last", request: "x", last: failed({ type: "destroy" }) },
    creating("destroy for destroy"),
  ],
]);
