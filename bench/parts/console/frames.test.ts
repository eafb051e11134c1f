import { expect, test } from "bun:test";

import { frameFigures } from "./frames.ts";

test("frames that take longer than two are slow", () => {
  const { p95Ms, ...figures } = frameFigures([0, 16, 32, 48, 98, 114]);
  expect(figures).toEqual({ frames: 5, medianMs: 16, slowShare: 0.2 });
  expect(p95Ms).toBeCloseTo(43.2);
});
