import { containing, endsAs, hour, minute, table } from "../testing/plans.ts";
import { completed, withSpec, workspaceIs, workspaceReady } from "../testing/views.ts";

table("an Update with an invalid spec", [
  ["fails without an operation", [workspaceReady, withSpec({ type: "explode" })], endsAs("Failed")],
  ["fails without a stack", [workspaceReady, withSpec({ stackName: "" })], endsAs("Failed")],
  ["fails without a Workspace", [withSpec({ workspaceName: "" })], endsAs("Failed")],
  [
    "names the field in its message",
    [withSpec({ type: "explode" })],
    {
      outcome: { ending: { message: containing("spec.type") } },
      status: { message: containing("spec.type") },
    },
  ],
  ["fails if its stack looks like an option of the CLI", [withSpec({ stackName: "--yes" })], endsAs("Failed")],
  [
    "is deleted when its TTL has expired",
    [withSpec({ type: "explode", ttlAfterCompleted: "1m" }), completed(hour), (view) => ({ ...view, ttlMs: minute })],
    { steps: [{ kind: "forgetRun" }, { kind: "deleteExpired" }] },
  ],
]);

table("an Update for a stack that its Workspace does not have", [
  [
    "fails, once the API server confirms it, if the Workspace is prepared",
    [workspaceIs({ state: "otherStack", stacks: ["prod"], isPrepared: true })],
    {
      ...endsAs("Failed", "confirmStackUnknown"),
      status: { message: containing("spec.stackName: the Workspace web has no stack dev, only prod; create") },
    },
  ],
]);
