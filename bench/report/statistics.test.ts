import { describe, expect, test } from "bun:test";

import { quantile, ratios, summarize } from "./statistics.ts";

describe("a summary", () => {
  test("without runs is undefined", () => expect(summarize([])).toBeUndefined());

  test("of one run equals that run", () =>
    expect(summarize([3])).toEqual({ runs: 1, median: 3, p95: 3, least: 3, most: 3 }));

  test("does not depend on the order of the runs", () => {
    expect(summarize([9, 1, 5])).toEqual({ runs: 3, median: 5, p95: 8.6, least: 1, most: 9 });
  });
});

describe("a quantile", () => {
  test("is interpolated between two runs", () => expect(quantile([1, 2, 3, 4], 0.5)).toBe(2.5));
  test("at the ends is the minimum and the maximum", () =>
    expect([quantile([2, 1], 0), quantile([2, 1], 1)]).toEqual([1, 2]));
});

describe("ratios", () => {
  test("are computed for each round", () => expect(ratios([4, 30], [2, 10])).toEqual([2, 3]));
  test("leave out rounds without a yardstick", () => expect(ratios([4, 30, 5], [2, 0])).toEqual([2]));
});
