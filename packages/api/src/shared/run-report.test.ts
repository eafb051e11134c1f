import { expect, test } from "bun:test";

import { boundStdout, stdoutLimit } from "./run-report.ts";

test("output within the limit is not changed", () => {
  expect(boundStdout("Previewing update\n")).toEqual({ text: "Previewing update\n", truncated: false });
});

test("longer output is truncated in the middle, to the limit", () => {
  const { text, truncated } = boundStdout(`BEGIN${"x".repeat(100_000)}END`);
  expect(truncated).toBe(true);
  expect(text.length).toBeLessThanOrEqual(stdoutLimit);
  expect(text.startsWith("BEGIN")).toBe(true);
  expect(text.endsWith("END")).toBe(true);
  expect(text).toContain("omitted");
});

test("truncation never splits a character", () => {
  for (let shift = 0; shift < 4; shift++) {
    const { text } = boundStdout("a".repeat(shift) + "😀".repeat(20_000));
    expect(text.isWellFormed()).toBe(true);
  }
});
