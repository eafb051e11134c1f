import type { NumberedEvent } from "@pko/records";
import { describe, expect, test } from "bun:test";

import { withColor, withoutColor } from "../output/style.ts";
import { render } from "../output/render.ts";
import { width } from "../output/wrap.ts";
import { RunLog } from "../runs/run-log.ts";
import { expectGolden } from "../testing/golden.ts";
import { ago, anUpdate, aStack, condition, now } from "../testing/objects.ts";
import { numbered, orderEvents, started, urn } from "../testing/runs.ts";
import { Terminal } from "../testing/terminal.ts";
import { frame, percentOf, type Watched } from "./frame.ts";
import { resultReport } from "./result.ts";
import { LinePrinter } from "./run-watch.ts";
import { Screen } from "./screen.ts";

const running = anUpdate("orders-3f9c1e77ab20", { status: { startTime: ago(180) } });

const watched = (events: readonly NumberedEvent[], more: Partial<Watched> = {}): Watched => ({
  stackName: "orders",
  update: running,
  log: RunLog.of(events),
  hidden: [],
  recovered: 0,
  expected: 8,
  ...more,
});

const canvas = { width: 80, height: 24, now: now - 168_000, paint: withoutColor };

const denied = {
  what: "the log of the workspace pod",
  permission: { verb: "get", resource: "pods/log", apiGroup: "", namespace: "shop" },
};

const many = numbered(
  Array.from({ length: 40 }, (_, at) => started(urn("random:index:RandomPet", `pet-${at}`), "create")),
);

const progress = {
  time: ago(2),
  created: 3,
  updated: 0,
  deleted: 0,
  replaced: 0,
  unchanged: 4,
  failed: 0,
  current: "aws:ec2/subnet:Subnet a",
  percent: 42,
};

const screens: Readonly<Record<string, Watched>> = {
  "watch-start": watched([]),
  "watch-middle": watched(orderEvents.slice(0, 9)),
  "watch-gap": watched(orderEvents.slice(6, 12)),
  "watch-many": watched(many),
  "watch-denied": watched([], {
    hidden: [denied],
    update: anUpdate("orders-1", { status: { startTime: ago(180), progress } }),
  }),
};

describe.each([80, 140])("the live view at %d columns", (columns) => {
  test.each(Object.entries(screens))("%s", (name, state) => {
    const lines = frame(state, { ...canvas, width: columns });
    expectGolden(`${name}-${columns}.txt`, `${lines.join("\n")}\n`);
    expect(Math.max(...lines.map(width))).toBeLessThanOrEqual(columns);
    expect(lines.length).toBeLessThan(canvas.height);
  });
});

test("the view never exceeds the height, and shows failing and running resources first", () => {
  const lines = frame(watched(orderEvents.slice(0, 9)), { ...canvas, height: 6 });
  expect(lines).toHaveLength(5);
  expect(lines[2]).toContain("✗ aws:ec2/subnet:Subnet a");
  expect(frame(watched(many), { ...canvas, height: 2 })).toHaveLength(1);
});

describe("the percentage", () => {
  test.each<[string, Watched, number | undefined]>([
    ["is that of the resources of the last run", watched(orderEvents.slice(0, 9)), 37],
    ["is never above 99 while it runs", watched(orderEvents.slice(3, 4), { expected: 1 }), 99],
    ["is the Update's without a record", watchedWithout(orderEvents, 42), 42],
    ["is unknown without both", watchedWithout(orderEvents, undefined), undefined],
  ])("%s", (_, state, percent) => {
    expect(percentOf(state)).toBe(percent);
  });
});

function watchedWithout(events: readonly NumberedEvent[], percent: number | undefined): Watched {
  const { expected: _, ...rest } = watched(events);
  if (percent === undefined) return rest;
  return { ...rest, update: anUpdate("a", { status: { startTime: ago(9), progress: { ...progress, percent } } }) };
}

test("the screen replaces what it drew, and leaves nothing behind", () => {
  const terminal = new Terminal();
  const screen = new Screen({ out: (text) => terminal.write(text) });
  terminal.write("$ watch\n");
  screen.draw(["one", "two", "three"]);
  screen.draw(["uno", "due"]);
  expect(terminal.text).toBe("$ watch\nuno\ndue");
  screen.close();
  expect(terminal.text).toBe("$ watch");
});

test("color does not change the text of the view", () => {
  const state = watched(orderEvents);
  const plain = frame(state, canvas);
  expect(frame(state, { ...canvas, paint: withColor }).map((line) => Bun.stripANSI(line))).toEqual(plain);
});

const complete = anUpdate("orders-3f9c1e77ab20", {
  status: {
    startTime: ago(180),
    endTime: ago(60),
    summary: "1 created, 1 updated, 1 replaced, 1 unchanged",
    message: "error: creating EC2 Subnet",
    conditions: [condition("Complete", "True", ["Complete", ""]), condition("Failed", "True", ["UpdateFailed", ""])],
  },
});
const stack = aStack("orders", {
  lastUpdate: { name: "orders-3f9c1e77ab20" },
  outputs: { url: "https://orders.example.com", password: "[secret]" },
});

describe.each([80, 140])("the result at %d columns", (columns) => {
  test.each([
    ["watch-result", { isLive: false }],
    ["watch-result-live", { isLive: true }],
  ])("%s", (name, how) => {
    const report = resultReport({ ...watched(orderEvents), update: complete, stack }, how);
    expectGolden(`${name}-${columns}.txt`, render(report.blocks, { width: columns, color: false }));
    expect(report.exitCode).toBe(1);
  });
});

test("outputs of another run are not shown", () => {
  const other = aStack("orders", { lastUpdate: { name: "orders-other" }, outputs: { url: "x" } });
  expect(resultReport({ ...watched([]), update: complete, stack: other }, { isLive: true }).document).toMatchObject({
    outputs: {},
  });
});

test("without a terminal, each event is a line, and a gap and a missing permission are reported once", () => {
  let printed = "";
  const printer = new LinePrinter((text) => (printed += text));
  const early = watched(orderEvents.slice(0, 4));
  printer.changed(early);
  printer.changed(early);
  printer.changed(watched([...orderEvents.slice(0, 4), ...orderEvents.slice(6)]));
  printer.changed(watched(orderEvents, { hidden: [denied], update: anUpdate("a", { status: { progress } }) }));
  expectGolden("watch-lines.txt", printed);
});
