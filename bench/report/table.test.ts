import { expect, test } from "bun:test";

import { figure, type Report } from "./figures.ts";
import { table } from "./table.ts";
import { amount, columns } from "./text.ts";

const report = (values: readonly number[], image = "docker.io/pulumi/operator:1"): Report => ({
  operator: "ns/operator",
  image,
  startedAt: "2026-01-01T00:00:00Z",
  seconds: 61,
  quick: true,
  machine: {
    processor: "CPU",
    cores: 2,
    memoryMb: 4096,
    kernel: "6.1",
    load: [0.5],
    kubernetes: "v1.34",
    nodes: ["local: 2 cores"],
  },
  figures: figure({ id: "create", title: "create", unit: "ms", note: "no pod before" }, values, [500, 500]),
  curves: [],
  profiles: [
    {
      title: "create, in parts",
      parts: [
        { name: "pod", ms: 750 },
        { name: "update", ms: 250 },
      ],
    },
  ],
  skipped: [{ title: "commit", reason: "no repository" }],
});

test("a table shows the median, 95 %, runs and the ratio to the bare CLI", () => {
  const row = table(report([1000, 2000]))
    .split("\n")
    .find((line) => line.startsWith("create"));
  expect(row?.split(/ {2,}/)).toEqual(["create", "1.50 s", "1.95 s", "2", "3.0"]);
});

test("other reports are additional columns, with a dash for missing figures", () => {
  const other = report([9000, 9000], "docker.io/pulumi/operator:2");
  const lines = table(report([1000]), [other, { ...other, figures: [] }]).split("\n");
  expect(lines.find((line) => line.startsWith("create"))).toMatch(/1\.00 s.*9\.00 s +–$/);
  expect(lines.some((line) => line.includes("ns/operator (operator:2)"))).toBe(true);
});

test("notes and what was not measured are listed below the table", () => {
  const text = table(report([1000]));
  expect(text).toContain("not measured: commit: no repository");
  expect(text).toContain("create: no pod before");
});

test("a profile shows the share of each part", () => {
  const lines = table(report([1000])).split("\n");
  expect(lines.find((line) => line.startsWith("  pod"))).toBe(`  pod     750 ms  ${"█".repeat(30)}`);
  expect(lines.find((line) => line.startsWith("  update"))).toBe(`  update  250 ms  ${"█".repeat(10)}`);
});

test("amounts have about three digits", () => {
  expect([
    amount(999, "ms"),
    amount(1234, "ms"),
    amount(120_000, "ms"),
    amount(49.6, "MB"),
    amount(0.5, "count"),
  ]).toEqual(["999 ms", "1.23 s", "120 s", "50 MB", "0.5"]);
});

test("columns are as wide as their longest cell", () => {
  expect(
    columns([
      ["a", "1"],
      ["long", "100"],
    ]),
  ).toEqual(["a       1", "long  100"]);
});

test("without values there is no figure", () => expect(figure({ id: "x", title: "x", unit: "ms" }, [])).toEqual([]));
