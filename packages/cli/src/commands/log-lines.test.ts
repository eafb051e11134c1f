import { formatFeedLine } from "@pko/records";
import { describe, expect, test } from "bun:test";

import { LogFormatter } from "./log-lines.ts";

const line = (msg: string, keys: object): string =>
  JSON.stringify({ level: "info", ts: "T", msg, logger: "agent", namespace: "team", pod: "web-workspace-0", ...keys });
const started = (run: string): string => line("run started", { run, operation: "up" });
const finished = (run: string): string => line("run finished", { run, outcome: "succeeded" });
const log = [
  started("1"),
  "Updating (dev):",
  finished("1"),
  started("2"),
  " {not json",
  "Outputs:",
  finished("2"),
  "after",
].join("\n");

describe("the log of a pod", () => {
  test("messages of the agent are in brackets", () => {
    const lines = new LogFormatter({ raw: false }).format(`${log}\n`).split("\n");
    expect(lines.slice(0, 2)).toEqual(["[T run started operation=up]", "Updating (dev):"]);
    expect(lines).toContain(" {not json");
  });

  test("messages of an earlier agent look the same", () => {
    const message = JSON.stringify({ time: "T", level: "warn", message: "cannot read the output", run: "1", lines: 3 });
    expect(new LogFormatter({ raw: false }).format(`${message}\n`)).toBe("[T warn: cannot read the output lines=3]\n");
  });

  test("a message that cannot be read is shown only with --raw", () => {
    const lines = '{"feed":2,"run":"1","level":"info","msg":"x"}\n{cut\n';
    expect(new LogFormatter({ raw: false }).format(lines)).toBe("");
    expect(new LogFormatter({ raw: true }).format(lines)).toBe(lines);
  });

  test("a log that is whole has no missing beginning", () => {
    const formatter = new LogFormatter({ raw: false });
    formatter.format(`${log}\n`);
    expect(formatter.isCut).toBe(false);
  });

  test("--raw keeps every line", () => {
    expect(new LogFormatter({ raw: true }).format(`${log}\n`)).toBe(`${log}\n`);
  });

  test("one run, and the end of it", () => {
    const formatter = new LogFormatter({ raw: false, run: "2" });
    expect(formatter.format(`${log}\n`)).toBe(
      "[T run started operation=up]\n {not json\nOutputs:\n[T run finished outcome=succeeded]\n",
    );
    expect(formatter.isEnded).toBe(true);
  });

  test("events of runs are not shown, except with --raw", () => {
    const event = formatFeedLine("1", { seq: 1, time: "T", event: { kind: "step", name: "up" } });
    const lines = `${event}\nUpdating (dev):\n`;
    expect(new LogFormatter({ raw: false }).format(lines)).toBe("Updating (dev):\n");
    expect(new LogFormatter({ raw: true }).format(lines)).toBe(lines);
  });

  test("a run whose beginning was rotated away starts with its first event", () => {
    const event = formatFeedLine("2", { seq: 9, time: "T", event: { kind: "step", name: "up" } });
    const formatter = new LogFormatter({ raw: false, run: "2" });
    expect(formatter.format(`of another run\n${event}\nOutputs:\n${finished("2")}\n`)).toBe(
      "Outputs:\n[T run finished outcome=succeeded]\n",
    );
    expect(formatter.isCut).toBe(true);
  });

  test.each([
    ["of a Stack that starts in the middle of a run", {}, true],
    ["of one run that is whole, after another one that is not", { run: "2" }, false],
  ])("reports a missing beginning: the log %s", (_, options, isCut) => {
    const formatter = new LogFormatter({ raw: false, ...options });
    formatter.format(`Outputs:\n${finished("1")}\n${started("2")}\n${finished("2")}\n`);
    expect(formatter.isCut).toBe(isCut);
  });

  test("pieces that end in the middle of a line", () => {
    const formatter = new LogFormatter({ raw: false });
    expect(formatter.format("Upda")).toBe("");
    expect(formatter.format("ting\nOut")).toBe("Updating\n");
    expect(formatter.end()).toBe("Out\n");
  });
});
