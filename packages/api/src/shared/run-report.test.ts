import { expect, test } from "bun:test";

import { boundStdout, stdoutLimit } from "./run-report.ts";

test("output that fits is kept whole", () => {
  expect(boundStdout("Previewing update\n")).toEqual({ text: "Previewing update\n", truncated: false });
});

test("of longer output the beginning and the end are kept, within the limit", () => {
  const { text, truncated } = boundStdout(`BEGIN${"x".repeat(100_000)}END`);
  expect(truncated).toBe(true);
  expect(text.length).toBeLessThanOrEqual(stdoutLimit);
  expect(text.startsWith("BEGIN")).toBe(true);
  expect(text.endsWith("END")).toBe(true);
  expect(text).toContain("left out");
});

test("no character is cut in half", () => {
  for (let shift = 0; shift < 4; shift++) {
    const { text } = boundStdout("a".repeat(shift) + "😀".repeat(20_000));
    expect(text.isWellFormed()).toBe(true);
  }
});
