import { expect, test } from "bun:test";

import { truncateStdout, stdoutLimit } from "./run-report.ts";

test("output within the limit is not changed", () => {
  expect(truncateStdout("Previewing update\n")).toEqual({ text: "Previewing update\n", truncated: false });
});

test("longer output is truncated in the middle, to the limit", () => {
  const { text, truncated } = truncateStdout(`BEGIN${"x".repeat(100_000)}END`);
  expect(truncated).toBe(true);
  expect(text.length).toBeLessThanOrEqual(stdoutLimit);
  expect(text.startsWith("BEGIN")).toBe(true);
  expect(text.endsWith("END")).toBe(true);
  expect(text).toContain("omitted");
});

test("truncation never splits a character", () => {
  for (let shift = 0; shift < 4; shift++) {
    const { text } = truncateStdout("a".repeat(shift) + "😀".repeat(20_000));
    expect(text.isWellFormed()).toBe(true);
  }
});
