import { describe, expect, test } from "bun:test";

import { windowAt, type UpdateWindow } from "./window-at.ts";

const hours = (count: number): number => count * 3_600_000;
const window = (schedule: string, durationMs: number, timeZone = "UTC"): UpdateWindow => ({
  schedule,
  durationMs,
  timeZone,
});

const nightly = window("0 22 * * MON-FRI", hours(4));
const berlin = window("0 22 * * *", hours(2), "Europe/Berlin");

/** `open until T`, or `closed until T in ZONE`. */
function stateAt(windows: readonly UpdateWindow[], at: string): string {
  const state = windowAt(windows, Date.parse(at));
  switch (state.kind) {
    case "open":
      return `open until ${new Date(state.until).toISOString()}`;
    case "closed":
      return `closed until ${new Date(state.opensAt).toISOString()} in ${state.timeZone}`;
    case "never":
      return "never";
  }
}

const at = (time: string): string => new Date(Date.parse(time)).toISOString();
const open = (until: string): string => `open until ${at(until)}`;
const closed = (until: string, zone = "UTC"): string => `closed until ${at(until)} in ${zone}`;

/** 2030-01-01 is a Tuesday. */
const cases: readonly (readonly [string, readonly UpdateWindow[], string, string])[] = [
  ["opens at its start", [nightly], "2030-01-01T22:00Z", open("2030-01-02T02:00Z")],
  ["is closed a millisecond before", [nightly], "2030-01-01T21:59:59.999Z", closed("2030-01-01T22:00Z")],
  ["is open until a millisecond before its end", [nightly], "2030-01-02T01:59:59.999Z", open("2030-01-02T02:00Z")],
  ["is closed at its end", [nightly], "2030-01-02T02:00Z", closed("2030-01-02T22:00Z")],
  ["opens after the weekend", [nightly], "2030-01-05T12:00Z", closed("2030-01-07T22:00Z")],
  ["opens in its time zone", [berlin], "2030-01-01T12:00Z", closed("2030-01-01T21:00Z", "Europe/Berlin")],
  ["opens an hour earlier in summer", [berlin], "2030-07-01T12:00Z", closed("2030-07-01T20:00Z", "Europe/Berlin")],
  [
    "shows the window that opens first",
    [nightly, berlin],
    "2030-01-01T12:00Z",
    closed("2030-01-01T21:00Z", "Europe/Berlin"),
  ],
  ["stays open with overlapping windows", [nightly, berlin], "2030-01-01T21:30Z", open("2030-01-02T02:00Z")],
  [
    "stays open with adjoining windows",
    [window("0 8 * * *", hours(2)), window("0 10 * * *", hours(2))],
    "2030-01-01T08:30Z",
    open("2030-01-01T12:00Z"),
  ],
  ["accepts a macro", [window("@daily", hours(1))], "2030-01-01T12:00Z", closed("2030-01-02T00:00Z")],
  ["accepts a step from a number", [window("0 6/8 * * *", 60_000)], "2030-01-01T12:00Z", closed("2030-01-01T14:00Z")],
  ["opens on February 29", [window("0 0 29 2 *", hours(1))], "2030-01-01T12:00Z", closed("2032-02-29T00:00Z")],
  ["never opens on February 30", [window("0 0 30 2 *", hours(1))], "2030-01-01T12:00Z", "never"],
  [
    "ignores a window that never opens if another does",
    [window("0 0 30 2 *", hours(1)), nightly],
    "2030-01-01T12:00Z",
    closed("2030-01-01T22:00Z"),
  ],
];

describe("an update window", () => {
  for (const [sentence, windows, time, state] of cases) {
    test(sentence, () => expect(stateAt(windows, time)).toBe(state));
  }

  test.each([
    ["as long as its period", window("0 * * * *", hours(1))],
    ["longer than its period", window("*/5 * * * *", hours(48))],
  ])("that is %s is always open", (_, always) => {
    const start = Date.UTC(2030, 2, 30);
    for (let hour = 0; hour < 72; hour++) expect(windowAt([always], start + hours(hour) + 1).kind).toBe("open");
  });
});
