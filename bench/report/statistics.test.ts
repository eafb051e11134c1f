import { describe, expect, test } from "bun:test";

import { quantile, ratios, summarise } from "./statistics.ts";

describe("a summary", () => {
  test("of nothing is nothing", () => expect(summarise([])).toBeUndefined());

  test("of one run is that run", () =>
    expect(summarise([3])).toEqual({ runs: 1, median: 3, p95: 3, least: 3, most: 3 }));

  test("does not depend on the order of the runs", () => {
    expect(summarise([9, 1, 5])).toEqual({ runs: 3, median: 5, p95: 8.6, least: 1, most: 9 });
  });
});

describe("a quantile", () => {
  test("lies between two runs where no run is at its place", () => expect(quantile([1, 2, 3, 4], 0.5)).toBe(2.5));
  test("at the ends is the least and the most", () =>
    expect([quantile([2, 1], 0), quantile([2, 1], 1)]).toEqual([1, 2]));
});

describe("ratios", () => {
  test("are taken round by round", () => expect(ratios([4, 30], [2, 10])).toEqual([2, 3]));
  test("leave out rounds without a yardstick", () => expect(ratios([4, 30, 5], [2, 0])).toEqual([2]));
});
