import { expect, test } from "bun:test";

import { figure, type Figure, type Report } from "./figures.ts";
import { mergeReports } from "./merge.ts";
import { sideBySide } from "./side-by-side.ts";

const report = (figures: readonly Figure[], load = 1): Report => ({
  operator: "ns/operator",
  image: "example.com/operator:1",
  startedAt: "2026-01-01T00:00:00Z",
  seconds: 60,
  quick: false,
  machine: { processor: "CPU", cores: 2, memoryMb: 4096, kernel: "6.1", load: [load], kubernetes: "v1", nodes: [] },
  figures,
  curves: [],
  profiles: [],
  skipped: [],
});

const create = (values: readonly number[]): Figure[] =>
  figure(
    { id: "create", title: "create", unit: "ms" },
    values,
    values.map(() => 500),
  );

const cellsOf = (text: string, title: string): string[] | undefined =>
  text
    .split("\n")
    .find((line) => line.startsWith(title))
    ?.split(/ {2,}/);

test("both operators have runs, median, 95 % and the ratio to the bare CLI, and the last column compares them", () => {
  const text = sideBySide(report(create([1000, 2000])), report(create([6000])));
  expect(cellsOf(text, "create")).toEqual(["create", "2", "1.50 s", "1.95 s", "3.0", "1", "6.00 s", "12.0", "4.0"]);
});

test("a figure that only one of them has is shown", () => {
  const own = figure({ id: "own", title: "own", unit: "count" }, [1]);
  const text = sideBySide(report(create([1000])), report(own));
  expect(cellsOf(text, "own")?.slice(0, 5)).toEqual(["own", "–", "–", "–", "–"]);
  expect(cellsOf(text, "create")?.slice(-4)).toEqual(["–", "–", "–", "–"]);
});

test("what was not measured is listed with the operator", () => {
  const other = { ...report([]), skipped: [{ title: "commit", reason: "no repository" }] };
  expect(sideBySide(report([]), other)).toContain("B not measured: commit: no repository");
});

test("the turns of one operator are one report, with all values", () => {
  const merged = mergeReports(report(create([1000]), 1), report(create([3000, 5000]), 2));
  expect(merged.figures).toEqual(create([1000, 3000, 5000]));
  expect([merged.seconds, merged.machine.load]).toEqual([120, [1, 2]]);
});
