import { expect, test } from "bun:test";
import { timestamp } from "@pko/kube";

import { anUpdate, cases, creating, messageFor, now, succeeded, viewOf, type Setting } from "../testing/views.ts";
import { planStack } from "./index.ts";

const conflict = { workspaceClass: { kind: "conflict", names: ["a", "b"] } } as const satisfies Setting;
const unknown = { workspaceClass: { kind: "unknown" } } as const satisfies Setting;
const classed: Setting = {
  workspaceClass: {
    kind: "one",
    name: "teams",
    uid: "c1",
    spec: { namespaceSelector: {}, template: { spec: { image: "default:1" } } },
  },
};

cases("a Stack whose namespace two classes select", [
  ["is stalled if an update is due", conflict, "none: WorkspaceClassConflict"],
  ["is stalled if it is up to date", { ...conflict, last: succeeded() }, "none: WorkspaceClassConflict"],
  ["lets a running update finish", { ...conflict, updates: [anUpdate()] }, "none: StackProcessing"],
  ["can be suspended", { ...conflict, spec: { suspend: true } }, "none: Suspended"],
  [
    "destroys nothing, because policies may apply",
    { ...conflict, deleting: true, spec: { destroyOnFinalize: true }, last: succeeded() },
    "none: WorkspaceClassConflict",
  ],
  [
    "is deleted if it destroys nothing",
    { ...conflict, deleting: true, last: succeeded() },
    "removeFinalizer: unchanged",
  ],
]);

cases("a Stack whose namespace is not in the cache yet", [
  ["waits, because defaults may apply", unknown, "none: StackProcessing"],
  ["keeps its status", { ...unknown, last: succeeded() }, "none: unchanged"],
]);

cases("a Stack with a class", [
  ["gets a Workspace with the defaults of the class when an update is due", classed, "applyWorkspace: StackProcessing"],
  ["is not updated because the class changes", { ...classed, last: succeeded() }, "none: Ready"],
  ["keeps its own Workspace without a class", {}, creating("up for first")],
]);

test("the cache of namespaces is checked less often, the older the Stack is", () => {
  const view = viewOf(unknown);
  const requeueMs = (createdAgoMs: number): number => {
    const metadata = { ...view.stack.metadata, creationTimestamp: timestamp(now - createdAgoMs) };
    return (planStack({ ...view, stack: { ...view.stack, metadata } }).requeueAt ?? Infinity) - now;
  };
  expect([0, 60_000, 7_200_000].map(requeueMs)).toEqual([5000, 15_000, 60_000]);
});

test("the message names both classes, and what to do", () => {
  const message = messageFor(conflict);
  expect(message).toContain("WorkspaceClasses a and b all select the namespace default");
  expect(message).toContain("Change the namespaceSelector");
});
