import { describe, expect, test } from "bun:test";

import { formatFeedLine, parseLogLine } from "./feed.ts";
import { findGaps, mergeEvents } from "./gaps.ts";
import type { NumberedEvent } from "./run-event.ts";

const numbered = (seq: number): NumberedEvent => ({
  seq,
  time: "2026-01-01T00:00:00Z",
  event: { kind: "step", name: `step ${seq}` },
});

describe("a line of the log is", () => {
  test("an event of a run", () => {
    const line = formatFeedLine("uid", numbered(3));
    expect(parseLogLine(line)).toEqual({ kind: "event", run: "uid", event: numbered(3) });
  });

  test.each([
    ["this version", { level: "info", ts: "T", msg: "run started", run: "uid", operation: "up" }],
    ["an earlier version", { time: "T", level: "info", message: "run started", run: "uid", operation: "up" }],
  ])("a message of an agent of %s", (_, line) => {
    const text = JSON.stringify(line);
    const message = { ts: "T", level: "info", msg: "run started", run: "uid", keys: { operation: "up" } };
    expect(parseLogLine(text)).toEqual({ kind: "message", text, message });
  });

  test("a message that cannot be read", () => {
    for (const text of ['{"level":"info"}', '{"feed":2,"run":"uid"}', "{cut"]) {
      expect(parseLogLine(text)).toEqual({ kind: "message", text });
    }
  });

  test("what the CLI printed, even if that looks like an event", () => {
    const text = ` ${formatFeedLine("uid", numbered(1))}`;
    expect(parseLogLine(text)).toEqual({ kind: "text", text });
  });
});

test("gaps are found at the start and between events", () => {
  expect(findGaps([3, 4, 8].map(numbered))).toEqual([
    { from: 1, to: 2 },
    { from: 5, to: 7 },
  ]);
  expect(findGaps([1, 2].map(numbered))).toEqual([]);
});

test("the record fills the gaps of the feed", () => {
  const events = mergeEvents([2, 5].map(numbered), [1, 2, 3, 4].map(numbered));
  expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
});
