/** What the Stack controller concludes from reports, with the Updates of this controller. */
import { expect, test } from "bun:test";
import type { ReportProblem, Update, UpdateReport, UpdateStatus } from "@pko/api";

import { unreportedUpdates } from "../shared/reports.ts";
import { ownersOf, running, stack, succeeded, updateOf, withdrawn } from "./testing/views.ts";

const report = (changes: UpdateReport): UpdateStatus => ({ ...withdrawn, report: changes });
const problem = (what: ReportProblem): UpdateStatus => report({ state: "running", problem: what });

const statuses: readonly (readonly [string, UpdateStatus, boolean])[] = [
  ["waits, and nothing is reported yet", {}, true],
  ["was withdrawn, and nothing is reported yet", withdrawn, true],
  ["is shown as waiting", report({ state: "pending" }), true],
  ["is shown as running", { ...running, report: { state: "running" } }, true],
  ["is shown as ended without a result", report({ state: "error" }), false],
  ["is shown as succeeded", { ...succeeded, report: { state: "success" } }, false],
  ["has a report that is due", report({ due: true }), true],
  ["is not reported, because the forge does not respond", problem("Unavailable"), true],
  ["is not reported, because the forge limits requests", problem("RateLimited"), true],
  ["is not reported, because the credentials are wrong", problem("Unauthorized"), false],
  ["is not reported, because the Secret is missing", problem("SecretMissing"), false],
];
test.each(statuses)("whether a preview is unreported that %s", (_, status, expected) => {
  const updates = [updateOf(status)];
  expect(unreportedUpdates({ stack, updates, isSuspended: false })).toEqual(expected ? ["web-1"] : []);
});

test("the first report of a suspended Stack is not sent before its Update has started", () => {
  const unreported = (status: UpdateStatus): string[] =>
    unreportedUpdates({ stack, updates: [updateOf(status)], isSuspended: true });
  expect(unreported({})).toEqual([]);
  expect(unreported(running)).toEqual(["web-1"]);
  expect(unreported(report({ state: "pending" }))).toEqual(["web-1"]);
});

test("an earlier Update without a report gets none, and others have nothing to do with the Stack", () => {
  const { metadata } = updateOf();
  const earlier = { ...metadata, name: "web-0", creationTimestamp: "2029-12-31T00:00:00Z" };
  const later = updateOf({}, { metadata: { ...metadata, name: "x", ownerReferences: ownersOf("x", "stack-uid") } });
  const drift = updateOf({}, { spec: { type: "refresh", previewOnly: true } });
  const names = (status: UpdateStatus, others: readonly Update[] = []): string[] =>
    unreportedUpdates({
      stack,
      updates: [updateOf(report({ state: "error" })), updateOf(status, { metadata: earlier }), ...others],
      isSuspended: false,
    });
  expect(names(withdrawn)).toEqual([]);
  expect(names(report({ state: "running" }))).toEqual(["web-0"]);
  expect(names(withdrawn, [later, drift])).toEqual([]);
});

test.each([["web-0"], ["web-2"]])(
  "of two Updates of one second, %s without a report is earlier if it ended first",
  (name) => {
    const { metadata } = updateOf();
    const earlier = updateOf(
      { ...withdrawn, endTime: "2030-01-01T00:00:00Z" },
      { metadata: { ...metadata, name, uid: "0" } },
    );
    const later = updateOf({ ...withdrawn, endTime: "2030-01-01T00:01:00Z", report: { state: "error" } });
    for (const updates of [
      [earlier, later],
      [later, earlier],
    ]) {
      expect(unreportedUpdates({ stack, updates, isSuspended: false })).toEqual([]);
    }
  },
);
