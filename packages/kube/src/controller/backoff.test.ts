import { expect, test } from "bun:test";
import { backoffDelay, defaultBackoff } from "./backoff.ts";

const policy = { baseMs: 100, factor: 3, capMs: 5000, jitter: 0.5 };

test("each failure multiplies the delay up to the cap", () => {
  const delays = [1, 2, 3, 4, 5, 5000].map((failures) => backoffDelay(policy, failures, () => 0));
  expect(delays).toEqual([100, 300, 900, 2700, 5000, 5000]);
});

test("the delay is shortened by at most the jitter", () => {
  expect(backoffDelay(policy, 2, () => 0.999_999)).toBeCloseTo(150, 2);
  for (let i = 0; i < 1000; i++) {
    const delay = backoffDelay(defaultBackoff, 4);
    expect(delay).toBeLessThanOrEqual(1600);
    expect(delay).toBeGreaterThan(1279);
  }
});
