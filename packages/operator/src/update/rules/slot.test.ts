import { expect, test } from "bun:test";

import { noon, viewOf, workspaceIs, workspaceReady, type ViewTrait } from "../testing/views.ts";
import type { WorkspaceFacts } from "../view.ts";
import { needsSlot } from "./slot.ts";

const queued: ViewTrait = (view) => ({
  ...view,
  slot: { kind: "waiting", position: 1, total: 1, limitOf: "operator", limit: 1, refreshAt: noon },
});
const ofOtherStack: WorkspaceFacts = { state: "otherStack", stacks: ["prod"], isPrepared: false };
const unready = workspaceIs({ state: "notReady", message: "Installing." });

test.each<[string, ViewTrait[], boolean]>([
  ["not without a Workspace", [], false],
  ["not while its Workspace is being deleted", [workspaceIs({ state: "deleting" })], false],
  ["not while its Workspace is for other stacks", [workspaceIs(ofOtherStack)], false],
  ["while its Workspace is woken for it", [unready], true],
  ["not to wait for one that would not help, because its Workspace is not ready", [unready, queued], false],
  ["to wake its Workspace", [workspaceIs({ state: "idle" }), queued], true],
  ["to start", [workspaceReady], true],
])("an Update that waits needs a slot: %s", (_, traits, needs) => {
  expect(needsSlot(viewOf(...traits))).toBe(needs);
});
