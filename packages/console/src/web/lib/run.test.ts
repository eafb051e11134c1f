import { describe, expect, test } from "bun:test";

import { chartOf, shortDuration } from "./gantt.ts";
import { opClass, runModel } from "./run.ts";
import { now, numbered, resourceEvent, urnOf } from "./testing.ts";

const events = [
  numbered(1, 0, { kind: "step", name: "up" }),
  numbered(2, 1, resourceEvent("a", "started", { changes: [{ path: "tags", kind: "add", new: "1" }] })),
  numbered(3, 2, resourceEvent("b", "started")),
  numbered(4, 3, { kind: "diagnostic", severity: "warning", message: "careful" }),
  numbered(5, 5, resourceEvent("a", "finished", { durationMs: 4000 })),
  numbered(8, 6, { kind: "diagnostic", severity: "error", message: "broken", urn: urnOf("c") }),
  numbered(9, 7, resourceEvent("c", "failed", { op: "update", durationMs: 2000 })),
  numbered(10, 7, resourceEvent("d", "finished", { op: "same", durationMs: 1 })),
  numbered(11, 8, { kind: "permalink", url: "https://example.com/1" }),
];

describe("a run", () => {
  const model = runModel(events);

  test("has a row for each step of a resource, with its state and time", () => {
    const rows = model.resources.map(({ name, op, state, start, end }) => [
      name,
      op,
      state,
      start - now,
      end && end - now,
    ]);
    expect(rows).toEqual([
      ["a", "create", "done", 1000, 5000],
      ["b", "create", "running", 2000, undefined],
      ["c", "update", "failed", 5000, 7000],
      ["d", "same", "done", 6999, 7000],
    ]);
  });

  test("keeps the changes that only the first event of a step has", () => {
    expect(model.resources[0]?.changes).toHaveLength(1);
  });

  test("lists errors before warnings", () => {
    expect(model.diagnostics.map(({ message }) => message)).toEqual(["broken", "careful"]);
  });

  test("shows the gap of lost events", () => expect(model.gaps).toEqual([{ from: 6, to: 7 }]));

  test("ignores kinds of events of a later version", () => {
    const later = { kind: "later" } as unknown as Parameters<typeof numbered>[2];
    expect(runModel([numbered(1, 0, later)]).resources).toEqual([]);
  });

  test("a replacement has a row for each of its steps", () => {
    const steps = ["create-replacement", "replace", "delete-replaced"];
    const replaced = steps.map((op, index) => numbered(index + 1, index, resourceEvent("a", "finished", { op })));
    expect(runModel(replaced).resources.map(({ op }) => op)).toEqual(steps);
  });

  test("replacements and deletions are dangerous", () => {
    expect(["replace", "delete", "delete-replaced", "create", "update", "same", "read"].map(opClass)).toEqual([
      "danger",
      "danger",
      "danger",
      "create",
      "update",
      "plain",
      "plain",
    ]);
  });
});

describe("the chart of a run", () => {
  const { resources } = runModel(events);

  test("places bars by their time, and ends what runs now", () => {
    const { bars, spanMs } = chartOf(resources, { now: now + 11_000 });
    expect(spanMs).toBe(10_000);
    expect(bars.map(({ resource, left, width }) => [resource.name, left, width])).toEqual([
      ["a", 0, 40],
      ["b", 10, 90],
      ["c", 40, 20],
    ]);
  });

  test("shows unchanged resources only if requested, and never thinner than visible", () => {
    const { bars } = chartOf(resources, { now: now + 11_000, all: true });
    expect(bars.map(({ resource, width }) => [resource.name, width]).at(-1)).toEqual(["d", 0.5]);
  });

  test("has few, round ticks", () => {
    expect(chartOf(resources, { now: now + 11_000 }).ticks.map(({ ms }) => ms)).toEqual([
      0, 2000, 4000, 6000, 8000, 10_000,
    ]);
    expect(chartOf(resources, { now: now + 40 * 3_600_000 }).ticks.length).toBeLessThanOrEqual(7);
  });

  test("of nothing is empty", () => expect(chartOf([], { now })).toEqual({ bars: [], ticks: [], spanMs: 0 }));

  test.each([
    [340, "340 ms"],
    [2100, "2.1 s"],
    [4000, "4 s"],
    [14_000, "14 s"],
    [65_000, "1 min 5 s"],
    [120_000, "2 min"],
  ])("%d ms is %s", (ms, text) => expect(shortDuration(ms)).toBe(text));
});
