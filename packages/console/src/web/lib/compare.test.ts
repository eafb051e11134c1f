import { expect, test } from "bun:test";

import { compareFacts, compareInputs, compareResources } from "./compare.ts";
import { runModel } from "./run.ts";
import { numbered, resourceEvent } from "./testing.ts";

test("facts that neither run has are left out", () => {
  expect(compareFacts({ Revision: "a", Trigger: undefined }, { Revision: "b", Result: "failed" })).toEqual([
    { label: "Revision", a: "a", b: "b", isEqual: false, isExpected: false },
    { label: "Result", a: "", b: "failed", isEqual: false, isExpected: false },
  ]);
});

test("no two runs start at the same time, so that this is not a difference", () => {
  const [started] = compareFacts({ Started: "a" }, { Started: "b" });
  expect(started).toMatchObject({ isEqual: false, isExpected: true });
});

test("inputs are compared by their digests, which are not shown", () => {
  expect(compareInputs({ config: "1", program: "2", env: "3" }, { config: "9", program: "2", secrets: "4" })).toEqual([
    { name: "config", text: "changed" },
    { name: "env", text: "only in the first run" },
    { name: "program", text: "the same" },
    { name: "secrets", text: "only in the second run" },
  ]);
});

test("only resources that the runs treated differently are listed", () => {
  const first = runModel([
    numbered(1, 0, resourceEvent("same", "finished")),
    numbered(2, 0, resourceEvent("changed", "finished")),
  ]).resources;
  const second = runModel([
    numbered(1, 0, resourceEvent("same", "finished")),
    numbered(2, 0, resourceEvent("changed", "failed", { op: "update" })),
    numbered(3, 0, resourceEvent("new", "finished")),
  ]).resources;
  expect(compareResources(first, second).map(({ name, a, b }) => [name, a, b])).toEqual([
    ["changed", "create", "update failed"],
    ["new", "not part of it", "create"],
  ]);
});
