import { expect, test } from "bun:test";

import {
  anUpdate,
  cases,
  creating,
  failed,
  program,
  resync,
  succeeded,
  viewOf,
  type Setting,
} from "../testing/views.ts";
import { planStack } from "./index.ts";

cases("the first update", [
  [
    "adds the finalizer to a new Stack before anything else",
    { finalizer: false, workspace: "absent" },
    "addFinalizer: unchanged",
  ],
  [
    "adds the finalizer even if the spec is invalid",
    { finalizer: false, spec: { stack: "" } },
    "addFinalizer: unchanged",
  ],
  ["applies the Workspace", { workspace: "absent" }, "applyWorkspace: StackProcessing"],
  ["changes a Workspace that has another program", { workspace: "other" }, "applyWorkspace: StackProcessing"],
  ["waits for a Workspace that is being prepared", { workspace: "preparing" }, "none: StackProcessing"],
  ["waits for a Workspace whose spec has not been observed", { workspace: "unseen" }, "none: StackProcessing"],
  ["waits for a Workspace that is being deleted", { workspace: "deleting" }, "none: StackProcessing"],
  ["leaves a Workspace with another owner alone", { workspace: "foreign" }, "none: OwnershipConflict"],
  ["creates the Update when the Workspace is ready", {}, creating("up for first")],
  ["creates a preview if the spec has preview", { spec: { preview: true } }, creating("preview for first")],
  ["treats a status without a last update like none", { status: { observedGeneration: 1 } }, creating("up for first")],
]);

cases("a Workspace", [
  ["failed to install", { workspace: { failed: "InstallationFailed" } }, "none: WorkspaceFailed"],
  ["failed to select the stack", { workspace: { failed: "InitializationFailed" } }, "none: WorkspaceFailed"],
  [
    "has a Pulumi CLI that is too old",
    { workspace: { failed: "IncompatibleConfiguration" } },
    "none: PulumiVersionTooLow",
  ],
  [
    "failed, and is changed for a new revision",
    {
      workspace: { failed: "InstallationFailed" },
      source: program(2),
      origin: { program: { name: "program", generation: 1 } },
    },
    "applyWorkspace: StackProcessing",
  ],
  [
    "is deleted after a success with workspaceReclaimPolicy Delete",
    { spec: { workspaceReclaimPolicy: "Delete" }, last: succeeded() },
    "deleteWorkspace: Ready",
  ],
  [
    "no longer exists",
    { spec: { workspaceReclaimPolicy: "Delete" }, last: succeeded(), workspace: "absent" },
    "none: Ready",
  ],
  [
    "is not deleted if it has another owner",
    { spec: { workspaceReclaimPolicy: "Delete" }, last: succeeded(), workspace: "foreign" },
    "none: Ready",
  ],
  [
    "is kept after a failure",
    { spec: { workspaceReclaimPolicy: "Delete" }, last: failed() },
    "none: RetryingAfterFailure",
  ],
  [
    "is kept with workspaceReclaimPolicy Retain",
    { spec: { workspaceReclaimPolicy: "Retain" }, last: succeeded() },
    "none: Ready",
  ],
]);

cases("the inputs of an update", [
  [
    "are checked before the Workspace is applied",
    { workspace: "absent", missing: "unchecked" },
    "checkInputs: unchanged",
  ],
  ["are checked before the Update is created", { missing: "unchecked" }, "checkInputs: unchanged"],
  [
    "are not checked while the Workspace is prepared",
    { workspace: "preparing", missing: "unchecked" },
    "none: StackProcessing",
  ],
  ["are not checked if no update is due", { last: succeeded(), missing: "unchecked" }, "none: Ready"],
]);

test("an Update is not named like one whose result is recorded", () => {
  const setting: Setting = { spec: resync(600), last: succeeded() };
  const nameFor = (updates: Setting["updates"] = []): string | undefined => {
    const [step] = planStack(viewOf({ ...setting, updates })).steps;
    return step?.kind === "createUpdate" ? step.update.metadata.name : undefined;
  };
  const name = nameFor();
  const recorded = anUpdate({ name: name ?? "", state: "succeeded", hasFinalizer: false, finalizers: [] });
  const other = nameFor([recorded]);
  expect(name).toStartWith("web-");
  expect(other).toStartWith("web-");
  expect(other).not.toBe(name);
});
