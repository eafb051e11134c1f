import { expect, test } from "bun:test";

import { ago, anUpdate } from "../testing/objects.ts";
import { aRecord } from "../testing/runs.ts";
import { summarizeUpdate } from "../stacks/summary.ts";
import { changesText, mergeHistory, summarizeRecord } from "./record-summary.ts";

test("changes are counted as the operator counts them", () => {
  expect(changesText({ create: 2, same: 5, "create-replacement": 1, replace: 1 }, false)).toBe(
    "2 created, 1 replaced, 5 unchanged",
  );
  expect(changesText({ create: 2, delete: 1 }, true)).toBe("2 to create, 1 to delete");
});

test("a run that was cancelled or interrupted has failed, with that as its class", async () => {
  const { errorClass: _, ...record } = (await aRecord()).record;
  const cancelled = { ...(await aRecord()), record: { ...record, result: "cancelled" as const } };
  expect(summarizeRecord(cancelled)).toMatchObject({ state: "failed", errorClass: "cancelled" });
});

test("an Update counts before its record, and one that has not started is the newest", async () => {
  const updates = [
    anUpdate("orders-3f9c1e77ab20", { status: { startTime: ago(180) } }),
    anUpdate("orders-waiting", { status: {} }),
  ].map(summarizeUpdate);
  const gone = { name: "orders-gone", record: { startTime: ago(7200), endTime: ago(7100) } };
  const merged = mergeHistory(updates, [await aRecord(), await aRecord(gone)]);
  expect(merged.map(({ name, recorded = false }) => `${name} ${recorded}`)).toEqual([
    "orders-waiting false",
    "orders-3f9c1e77ab20 false",
    "orders-gone true",
  ]);
});
