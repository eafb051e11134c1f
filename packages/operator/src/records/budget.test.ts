import { describe, expect, test } from "bun:test";

import { excessRecords } from "./budget.ts";
import type { StoredRecord } from "./stored-record.ts";

const record = (name: string, second: number, bytes = 10): StoredRecord => ({
  name,
  namespace: "default",
  uid: `uid-of-${name}`,
  createdAt: `2026-01-01T00:00:${String(second).padStart(2, "0")}Z`,
  bytes,
  updateUid: `uid-of-update-${name}`,
});

type Case = readonly [sentence: string, records: readonly StoredRecord[], budget: number, deleted: readonly string[]];

const cases: readonly Case[] = [
  ["keeps everything within the budget", [record("a", 1), record("b", 2)], 20, []],
  ["deletes the oldest", [record("b", 2), record("a", 1), record("c", 3)], 25, ["a"]],
  ["deletes as many as necessary", [record("a", 1), record("b", 2), record("c", 3)], 11, ["a", "b"]],
  ["counts bytes, not records", [record("a", 1, 1), record("b", 2, 100), record("c", 3, 5)], 10, ["a", "b"]],
  ["frees a little more than it must", [record("a", 1, 2), record("b", 2, 5), record("c", 3, 94)], 100, ["a", "b"]],
  ["decides by name between records of one second", [record("b", 1), record("a", 1)], 15, ["a"]],
  ["deletes everything without a budget", [record("a", 1), record("b", 2)], 0, ["a", "b"]],
];

describe("the budget of records", () => {
  for (const [sentence, records, budget, deleted] of cases) {
    test(sentence, () => expect(excessRecords(records, budget).map(({ name }) => name)).toEqual([...deleted]));
  }
});
