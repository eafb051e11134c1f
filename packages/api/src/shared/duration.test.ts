import { describe, expect, test } from "bun:test";

import { parseDuration } from "./duration.ts";

describe("a duration in Go's format", () => {
  const cases: [string, number | undefined][] = [
    ["30m", 1_800_000],
    ["1h30m", 5_400_000],
    ["1.5h", 5_400_000],
    [".5s", 500],
    ["300ms", 300],
    ["250us", 0.25],
    ["250µs", 0.25],
    ["1000000ns", 1],
    ["0", 0],
    ["-0s", 0],
    ["-5m", -300_000],
    ["+5m", 300_000],
    ["24h0m0s", 86_400_000],
    ["", undefined],
    ["30", undefined],
    ["30 m", undefined],
    ["1d", undefined],
    ["m", undefined],
    [".h", undefined],
    ["1h30", undefined],
    ["1".repeat(200) + "h", undefined],
  ];
  for (const [text, ms] of cases) {
    test(`${JSON.stringify(text.slice(0, 20))} is ${ms === undefined ? "invalid" : `${ms} ms`}`, () => {
      expect(parseDuration(text)).toBe(ms);
    });
  }
});
