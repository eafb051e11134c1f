import { expect, test } from "bun:test";

import { unavailable } from "../../../sources/source-view.ts";
import { ago, anUpdate, aTrigger, cases, creating, failed, now, succeeded, viewOf } from "../../testing/views.ts";
import { planStack } from "../index.ts";

const deleted = { deleting: true, spec: { destroyOnFinalize: true } } as const;
const info = { projectInfo: { name: "project", runtime: "yaml" } };
const noSource = unavailable("notFound", "there is no Program program");
cases("deletion without destroyOnFinalize", [
  ["removes the finalizer immediately", { deleting: true, last: succeeded() }, "removeFinalizer: unchanged"],
  [
    "withdraws an update that has not started",
    { deleting: true, updates: [anUpdate()] },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "waits until the withdrawn update has ended",
    { deleting: true, updates: [anUpdate({ deleting: true })] },
    "none: StackProcessing",
  ],
  [
    "withdraws a destroy that has not started if destroyOnFinalize is turned off",
    { deleting: true, updates: [anUpdate({ type: "destroy" })] },
    "withdrawUpdate: StackProcessing",
  ],
  ["waits for a running update", { deleting: true, updates: [anUpdate({ startedAt: now })] }, "none: StackProcessing"],
  [
    "cancels a running update on request",
    { deleting: true, cancelled: "web-now", updates: [anUpdate({ startedAt: now })] },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "destroys nothing for a Stack that previews: the Pulumi stack may be another Stack's",
    { deleting: true, spec: { destroyOnFinalize: true, preview: true }, last: succeeded(), status: { deployed: true } },
    "removeFinalizer: unchanged",
  ],
  [
    "removes the finalizer though the spec is invalid",
    { deleting: true, spec: { stack: "" }, last: succeeded() },
    "removeFinalizer: unchanged",
  ],
  [
    "removes the finalizer after failures",
    { deleting: true, last: failed({ failures: 9 }) },
    "removeFinalizer: unchanged",
  ],
  ["removes the finalizer without a source", { deleting: true, source: noSource }, "removeFinalizer: unchanged"],
  [
    "leaves a Stack without our finalizer alone",
    { deleting: true, finalizer: false, last: succeeded() },
    "none: unchanged",
  ],
  ["adds no finalizer", { ...deleted, finalizer: false }, "none: unchanged"],
]);

cases("deletion with destroyOnFinalize", [
  [
    "removes the finalizer of a Stack that has never run",
    { ...deleted, workspace: "absent" },
    "removeFinalizer: unchanged",
  ],
  [
    "removes the finalizer of a Stack that has never run though the spec is invalid",
    { deleting: true, spec: { stack: "", destroyOnFinalize: true } },
    "removeFinalizer: unchanged",
  ],
  ["creates the destroy", { ...deleted, last: succeeded() }, creating("destroy for destroy")],
  [
    "creates the destroy though the last update failed",
    { ...deleted, last: failed() },
    creating("destroy for destroy"),
  ],
  [
    "creates the destroy though the last update failed repeatedly",
    { ...deleted, last: failed({ failures: 9 }) },
    creating("destroy for destroy"),
  ],
  [
    "destroys nothing if only previews ran: the Pulumi stack may be another Stack's",
    { ...deleted, last: succeeded({ type: "preview" }), status: { deployed: false } },
    "removeFinalizer: unchanged",
  ],
  [
    "waits for a running preview",
    {
      ...deleted,
      last: succeeded({ type: "preview" }),
      status: { deployed: false },
      updates: [anUpdate({ type: "preview", startedAt: now })],
    },
    "none: StackProcessing",
  ],
  [
    "creates the destroy if updates ran before the last preview",
    { ...deleted, last: succeeded({ type: "preview" }), status: { deployed: true } },
    creating("destroy for destroy"),
  ],
  [
    "creates the destroy if the Go operator did not record whether updates ran",
    { ...deleted, last: succeeded({ type: "preview" }) },
    creating("destroy for destroy"),
  ],
  [
    "waits for a first update that no status shows yet",
    {
      ...deleted,
      last: succeeded({ type: "preview" }),
      status: { deployed: false },
      updates: [anUpdate({ startedAt: now })],
    },
    "none: StackProcessing",
  ],
  [
    "applies a Workspace for the destroy",
    { ...deleted, last: succeeded(), workspace: "absent" },
    "applyWorkspace: StackProcessing",
  ],
  [
    "waits until the Workspace is ready",
    { ...deleted, last: succeeded(), workspace: "preparing" },
    "none: StackProcessing",
  ],
  [
    "applies the Workspace with the source if it is available",
    { ...deleted, last: succeeded(), status: info, workspace: "other" },
    "applyWorkspace: StackProcessing",
  ],
  [
    "waits until the source has been read",
    { ...deleted, last: succeeded(), source: { kind: "pending", what: "the first check" } },
    "none: StackProcessing",
  ],
  [
    "applies a Workspace without the source if that no longer exists",
    { ...deleted, last: succeeded(), status: info, source: noSource, workspace: "absent" },
    "applyWorkspace: StackProcessing",
  ],
  [
    "creates the destroy in a Workspace without the source",
    { ...deleted, last: succeeded(), status: info, source: noSource, origin: info },
    creating("destroy for destroy"),
  ],
  [
    "creates the destroy in that Workspace though the source is available again",
    { ...deleted, last: succeeded(), status: info, origin: info },
    creating("destroy for destroy"),
  ],
  [
    "needs the source if no project information is recorded",
    { ...deleted, last: succeeded(), source: noSource },
    "none: SourceUnavailable",
  ],
  [
    "waits for the retry of a failed destroy though the source no longer exists",
    { ...deleted, last: failed({ type: "destroy" }), source: noSource },
    "none: RetryingAfterFailure",
  ],
  [
    "needs the source if the program has to run",
    {
      deleting: true,
      spec: { destroyOnFinalize: true, runProgram: true },
      last: succeeded(),
      status: info,
      source: noSource,
    },
    "none: SourceUnavailable",
  ],
  [
    "applies a Workspace without the source if the source cannot be prepared",
    { ...deleted, last: succeeded(), status: info, workspace: { failed: "InstallationFailed" } },
    "applyWorkspace: StackProcessing",
  ],
  [
    "requires a valid spec",
    { deleting: true, spec: { stack: "", destroyOnFinalize: true }, last: succeeded() },
    "none: SpecInvalid",
  ],
  [
    "ignores a dependency cycle",
    { ...deleted, last: succeeded(), cycle: ["web", "base", "web"] },
    creating("destroy for destroy"),
  ],
  [
    "keeps the finalizer after a failed destroy",
    { ...deleted, last: failed({ type: "destroy" }) },
    "none: RetryingAfterFailure",
  ],
  [
    "waits for the retry of a failed destroy after an update with inputs",
    { ...deleted, last: failed({ type: "destroy", inputs: "base.url=v1" }) },
    "none: RetryingAfterFailure",
  ],
  [
    "retries a failed destroy",
    { ...deleted, last: failed({ type: "destroy", lastResyncTime: ago(10) }) },
    creating("destroy for retry"),
  ],
  [
    "retries without a delay if the spec changes",
    { ...deleted, generation: 2, last: failed({ type: "destroy" }) },
    creating("destroy for destroy"),
  ],
  [
    "retries without a delay if a reconcile is requested",
    { ...deleted, request: "x", last: failed({ type: "destroy" }) },
    creating("destroy for destroy"),
  ],
  [
    "is stalled after three failures",
    { ...deleted, last: failed({ type: "destroy", failures: 3 }) },
    "none: UpdateFailed",
  ],
  [
    "retries also when stalled",
    { ...deleted, last: failed({ type: "destroy", failures: 3, lastResyncTime: ago(90) }) },
    creating("destroy for retry"),
  ],
  [
    "removes the finalizer after the destroy succeeded",
    { ...deleted, last: succeeded({ type: "destroy" }) },
    "removeFinalizer: unchanged",
  ],
  [
    "removes the finalizer of the Update before",
    {
      ...deleted,
      last: succeeded({ type: "destroy", name: "web-now" }),
      updates: [anUpdate({ type: "destroy", state: "succeeded" })],
    },
    "removeUpdateFinalizers, removeFinalizer: unchanged",
  ],
  [
    "records the success of the destroy first",
    {
      ...deleted,
      last: succeeded(),
      updates: [anUpdate({ type: "destroy", state: "succeeded", trigger: aTrigger({ type: "destroy" }) })],
    },
    "recordResult: StackProcessing",
  ],
  [
    "waits for a running update that no status shows",
    { ...deleted, updates: [anUpdate({ startedAt: now })] },
    "none: StackProcessing",
  ],
  [
    "creates the destroy if the status shows a current update",
    { ...deleted, status: { currentUpdate: { name: "web-x" } } },
    creating("destroy for destroy"),
  ],
  [
    "removes the finalizer if destroyOnFinalize is turned off",
    { deleting: true, spec: {}, last: failed({ type: "destroy" }) },
    "removeFinalizer: unchanged",
  ],
]);

const guarded = { deleting: true, spec: { destroyOnFinalize: true, protect: true } } as const;

cases("deletion of a protected Stack", [
  ["destroys nothing", { ...guarded, last: succeeded() }, "none: Protected"],
  ["keeps the finalizer without destroyOnFinalize", { deleting: true, spec: { protect: true } }, "none: Protected"],
  [
    "keeps the finalizer of a Stack that only previews",
    { deleting: true, spec: { protect: true, preview: true }, last: succeeded({ type: "preview" }) },
    "none: Protected",
  ],
  ["keeps the finalizer of a Stack that has never run", { ...guarded, workspace: "absent" }, "none: Protected"],
  [
    "keeps the finalizer though the spec is invalid",
    { deleting: true, spec: { stack: "", protect: true }, last: succeeded() },
    "none: Protected",
  ],
  ["does not need the source", { ...guarded, last: succeeded(), source: noSource }, "none: Protected"],
  ["does not retry a failed destroy", { ...guarded, last: failed({ type: "destroy" }) }, "none: Protected"],
  [
    "waits for a running update",
    { ...guarded, last: succeeded(), updates: [anUpdate({ startedAt: now })] },
    "none: StackProcessing",
  ],
  [
    "withdraws an update that has not started",
    { ...guarded, last: succeeded(), updates: [anUpdate()] },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "withdraws a destroy that has not started",
    { ...guarded, last: succeeded(), updates: [anUpdate({ type: "destroy" })] },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "waits for a running destroy, which was started before the Stack was protected",
    { ...guarded, last: succeeded(), updates: [anUpdate({ type: "destroy", startedAt: now })] },
    "none: StackProcessing",
  ],
  [
    "removes the finalizer if everything was destroyed before the Stack was protected",
    { ...guarded, last: succeeded({ type: "destroy" }) },
    "removeFinalizer: unchanged",
  ],
  [
    "leaves a Stack without our finalizer alone",
    { ...guarded, finalizer: false, last: succeeded() },
    "none: unchanged",
  ],
  [
    "continues with the destroy when protect is set to false",
    { ...guarded, spec: { destroyOnFinalize: true, protect: false }, generation: 2, last: succeeded() },
    creating("destroy for destroy"),
  ],
  [
    "removes the finalizer when protect is set to false without destroyOnFinalize",
    { deleting: true, spec: { protect: false }, last: succeeded() },
    "removeFinalizer: unchanged",
  ],
]);

cases("a protected Stack that is not being deleted", [
  ["is updated", { spec: { protect: true } }, creating("up for first")],
]);

test("keeps the finalizer while another owner's Update runs in the Workspace", () => {
  const plan = planStack({ ...viewOf({ deleting: true, last: succeeded() }), otherUpdate: "by-hand" });
  expect(plan).toMatchObject({
    steps: [],
    outcome: { waitingFor: "the end of Update by-hand" },
    requeueAt: now + 10_000,
  });
});
