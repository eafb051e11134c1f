import { describe, expect, test } from "bun:test";

import { stackEventsFor } from "../events.ts";
import { stackStatus } from "../status.ts";
import {
  ago,
  anUpdate,
  cases,
  creating,
  failed,
  messageFor,
  now,
  program,
  succeeded,
  viewOf,
  type Setting,
} from "../testing/views.ts";
import { planStack } from "./index.ts";

const most = (maxFailures: number) => ({ spec: { maxFailures } });
const tried = (failures: number) => failed({ failures, lastResyncTime: ago(1_000_000) });
const { failures: _, ...uncounted } = tried(1);
const destroys = { deleting: true, spec: { destroyOnFinalize: true, maxFailures: 2 } } as const;
const destroyed = (failures: number) => failed({ type: "destroy", failures, lastResyncTime: ago(1_000_000) });

cases("with maxFailures, a failed update", [
  ["is retried while attempts are left", { ...most(3), last: tried(2) }, creating("up for retry")],
  ["waits for the retry while attempts are left", { ...most(3), last: failed() }, "none: RetryingAfterFailure"],
  ["is not retried after the last attempt", { ...most(3), last: tried(3) }, "none: RetriesExhausted"],
  ["is not retried after more attempts than allowed now", { ...most(3), last: tried(7) }, "none: RetriesExhausted"],
  [
    "is retried if its status, of the Go operator, does not show the number of failures",
    { ...most(2), last: uncounted },
    creating("up for retry"),
  ],
  ["is not retried after its only attempt", { ...most(1), last: tried(1) }, "none: RetriesExhausted"],
  [
    "is not repeated by a resync",
    { spec: { maxFailures: 1, continueResyncOnCommitMatch: true, resyncFrequencySeconds: 60 }, last: tried(1) },
    "none: RetriesExhausted",
  ],
  [
    "is not retried after conflicts either",
    { ...most(1), last: { ...tried(1), failure: "conflict" } },
    "none: RetriesExhausted",
  ],
  ["runs again for a changed spec", { ...most(1), last: tried(1), generation: 2 }, creating("up for generation")],
  ["runs again for a new revision", { ...most(1), last: tried(1), source: program(2) }, creating("up for revision")],
  ["runs again if that is requested", { ...most(1), last: tried(1), request: "now" }, creating("up for request")],
  ["is shown as cancelled if it was", { ...most(1), last: tried(1), cancelled: "web-last" }, "none: UpdateFailed"],
  ["is retried for ever without maxFailures", { last: tried(100) }, creating("up for retry")],
  [
    "is recorded as the last attempt",
    { ...most(1), updates: [anUpdate({ state: "failed" })] },
    "recordResult: RetriesExhausted",
  ],
  [
    "is recorded as not the last attempt if the spec has changed since",
    { ...most(1), generation: 2, updates: [anUpdate({ state: "failed" })] },
    "recordResult: RetryingAfterFailure",
  ],
]);

cases("with maxFailures, a failed destroy", [
  ["is retried while attempts are left", { ...destroys, last: destroyed(1) }, creating("destroy for retry")],
  ["is not retried after the last attempt", { ...destroys, last: destroyed(2) }, "none: RetriesExhausted"],
  [
    "runs again if that is requested",
    { ...destroys, last: destroyed(2), request: "now" },
    creating("destroy for destroy"),
  ],
]);

test("an Update that was withdrawn is no failed attempt", () => {
  const withdrawn = anUpdate({ state: "failed", failure: "withdrawn", endedAt: now });
  const setting: Setting = { ...most(2), last: tried(1), updates: [withdrawn] };
  const view = viewOf(setting);
  expect(stackStatus(view, planStack(view)).lastUpdate?.failures).toBe(1);
});

describe("the message after a failure", () => {
  const table: readonly (readonly [string, Setting, string])[] = [
    [
      "shows the attempt",
      { ...most(5), last: failed({ failures: 2 }) },
      "The up web-last failed (attempt 2 of 5): error: no such bucket\nIt will be retried at",
    ],
    ["shows the first attempt", { ...most(5), last: failed() }, "The up web-last failed (attempt 1 of 5): error"],
    [
      "shows how often it failed",
      { last: failed({ failures: 2 }) },
      "The up web-last failed for the 2nd time in a row: error",
    ],
    [
      "shows the attempt of a conflict",
      { ...most(5), last: failed({ failures: 2, failure: "conflict" }) },
      "The up web-last failed (attempt 2 of 5), because another update",
    ],
    [
      "shows that a destroy does not depend on the source",
      { ...destroys, last: destroyed(2) },
      "The destroy web-last failed 2 of 2 times, so it is not retried: error: no such bucket\nIt will be retried when the spec changes, or",
    ],
    [
      "shows that it is not retried, why, and what starts it again",
      { ...most(3), last: tried(3) },
      "The up web-last failed 3 of 3 times, so it is not retried: error: no such bucket\nIt will be retried when the spec or the source changes, or when you set the annotation pulumi.com/reconciliation-request of the Stack to a new value.",
    ],
  ];
  for (const [sentence, setting, text] of table) test(sentence, () => expect(messageFor(setting)).toContain(text));
});

test("one event reports that the retries are exhausted", () => {
  const eventsOf = (setting: Setting): string[] => {
    const view = viewOf(setting);
    return stackEventsFor(view, planStack(view)).map(({ reason }) => reason);
  };
  const last = anUpdate({ state: "failed", endedAt: now });
  expect(eventsOf({ ...most(1), updates: [last] })).toEqual(["StackUpdateFailure", "StackRetriesExhausted"]);
  const exhausted: Setting = { ...most(1), last: tried(1) };
  const view = viewOf(exhausted);
  const status = stackStatus(view, planStack(view));
  expect(eventsOf({ ...exhausted, status })).toEqual([]);
  expect(eventsOf({ last: succeeded() })).toEqual([]);
});
