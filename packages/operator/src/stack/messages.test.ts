import { describe, expect, test } from "bun:test";

import { unavailable } from "../sources/source-view.ts";
import { planStack } from "./rules/index.ts";
import { stackStatus } from "./status.ts";
import {
  ago,
  anUpdate,
  failed,
  messageFor,
  now,
  prerequisite,
  program,
  resync,
  stackOutput,
  succeeded,
  viewOf,
  withOutput,
  type Setting,
} from "./testing/views.ts";

const lostNode = { reason: "NodeLost", message: "Pod web-workspace-0 has not responded." } as const;

const deleted = { deleting: true, spec: { destroyOnFinalize: true } } as const;
describe("messages report", () => {
  const table: readonly (readonly [string, Setting, RegExp])[] = [
    ["which fields are wrong", { spec: { stack: "" } }, /^spec\.stack: is not a valid name of a Pulumi stack/],
    ["which Stacks form a cycle", { cycle: ["web", "base", "web"] }, /web → base → web/],
    [
      "the error of the program, and when it is retried",
      { last: failed() },
      /^The up web-last failed: error: no such bucket\nIt will be retried at 2030-01-01T12:00:05Z\.$/,
    ],
    ["how often it failed", { last: failed({ failures: 3 }) }, /for the 3rd time in a row/],
    ["what a Workspace waits for", { workspace: "preparing" }, /is being prepared for the first update: installing\./],
    ["why it failed", { workspace: { failed: "InstallationFailed" } }, /cannot be prepared: npm: 404/],
    [
      "what a stuck update waits for",
      { updates: [anUpdate({ startedAt: now - 1000, stall: lostNode })] },
      /^The up web-now is stuck\. Pod web-workspace-0 has not responded\.$/,
    ],
    [
      "what the deletion of the Stack waits for",
      {
        deleting: true,
        updates: [anUpdate({ startedAt: now - 1000, stall: lostNode })],
      },
      /^The up web-now is stuck; the Stack will be deleted when it ends.* Pod web-workspace-0 has not responded\.$/,
    ],
    [
      "that a Workspace's pod is on a lost node",
      { workspace: { failed: "NodeLost" } },
      /^Workspace web cannot be prepared: /,
    ],
    [
      "since when an update runs",
      { updates: [anUpdate({ startedAt: now - 1000 })] },
      /has been running since 2030-01-01T11:59:59Z/,
    ],
    [
      "that a protected Stack is kept, and how to destroy its resources or keep them",
      { deleting: true, spec: { destroyOnFinalize: true, protect: true }, last: succeeded() },
      /^The Stack is being deleted although spec\.protect is true, so nothing is destroyed .*set spec\.protect to false; to keep them, set spec\.destroyOnFinalize to false first\.$/,
    ],
    [
      "how to delete a protected Stack without destroyOnFinalize",
      { deleting: true, spec: { protect: true }, last: succeeded() },
      /To delete the Stack and keep its resources, set spec\.protect to false\.$/,
    ],
    [
      "that nothing follows the running update of a protected Stack",
      { deleting: true, spec: { protect: true }, updates: [anUpdate({ startedAt: now })] },
      /; the Stack is being deleted, but it is protected, so nothing will be destroyed\.$/,
    ],
    [
      "that the destroy follows the running update",
      { ...deleted, updates: [anUpdate({ startedAt: now })] },
      /the resources will be destroyed when it ends/,
    ],
    [
      "for which Stack it waits",
      { prerequisites: [prerequisite({ last: "none" })] },
      /Stack base has not succeeded yet/,
    ],
    [
      "that an update of the prerequisite is requested",
      { prerequisites: [prerequisite({ withinMs: 1 })] },
      /last succeeded at 2030-01-01T11:50:00Z, which is too long ago; another update of it is requested/,
    ],
    [
      "which output is missing, and which exist",
      { spec: withOutput(), stackOutputs: [{ ...stackOutput(), others: ["uri", "zone"] }] },
      /Stack base has no output url: it has uri, zone/,
    ],
    [
      "that a Stack was only previewed",
      { prerequisites: [prerequisite({ last: "previewed" })] },
      /Stack base was only previewed and has to be deployed/,
    ],
    [
      "that the Stack is deleted when its update ends",
      { deleting: true, updates: [anUpdate({ startedAt: now })] },
      /the Stack will be deleted when it ends, and its resources are kept/,
    ],
    [
      "when a missing Secret is checked again",
      { missing: ["there is no Secret a"] },
      /there is no Secret a; this is checked again automatically/,
    ],
    [
      "that another update runs",
      { last: failed({ failure: "conflict" }) },
      /because another update of the Pulumi stack is running/,
    ],
    ["what changed", { last: succeeded({ summary: "2 created" }) }, /^The last update succeeded: 2 created\.$/],
    [
      "the pending operations that the last update left in the state",
      { last: succeeded({ warning: "the state has pending operations" }) },
      /^The last update succeeded\. Warning: the state has pending operations\.$/,
    ],
    [
      "the warning of a Workspace",
      { last: succeeded(), workspace: { warning: "its state is not persistent" } },
      /^The last update succeeded\. Warning: its state is not persistent\.$/,
    ],
    [
      "the warning of a source",
      { last: succeeded(), source: { ...program(1), warning: "Bucket b is not ready" } },
      /^The last update succeeded\. Warning: Bucket b is not ready\.$/,
    ],
  ];
  for (const [what, setting, message] of table) test(what, () => expect(messageFor(setting)).toMatch(message));

  test("since when it waits for the same", () => {
    const setting = { workspace: "preparing" as const };
    const first = viewOf(setting);
    const status = stackStatus(first, planStack(first));
    expect(status.waiting).toEqual({ for: "Workspace web", since: ago(0) });
    const later = { ...viewOf({ ...setting, status }), now: now + 60_000 };
    expect(stackStatus(later, planStack(later))).toEqual(status);
  });

  test("when the next resync is", () => {
    const view = viewOf({ spec: resync(600), last: succeeded({ lastResyncTime: ago(100) }) });
    const plan = planStack(view);
    expect(stackStatus(view, plan).next).toEqual({ what: "the periodic resync", time: ago(-500) });
    expect(plan.requeueAt).toBe(now + 500_000);
  });

  test("requeues a Stack whose source is unavailable: the cause may be a Secret, which is not watched", () => {
    expect(planStack(viewOf({ source: unavailable("auth", "no") })).requeueAt).toBe(now + 15_000);
  });

  test("truncates a long message without splitting a character", () => {
    const message = "😀".repeat(20_000);
    const view = viewOf({ last: failed({ message }) });
    const shown = stackStatus(view, planStack(view)).conditions?.[0]?.message ?? "";
    expect(shown.length).toBeLessThanOrEqual(8192);
    expect(shown.isWellFormed()).toBe(true);
  });
});
