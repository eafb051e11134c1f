import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";

import { newSeed, randomForKeys, testSeed } from "./seed.ts";

const given = process.env["TEST_SEED"];
let print = spyOn(console, "log");
// `make test` would show what these tests print as seeds.
beforeEach(() => void (print = spyOn(console, "log").mockImplementation(() => undefined)));
afterEach(() => {
  print.mockRestore();
  if (given === undefined) delete process.env["TEST_SEED"];
  else process.env["TEST_SEED"] = given;
});

describe("the seed of a test", () => {
  test("is TEST_SEED if it is set", () => {
    process.env["TEST_SEED"] = "42";
    expect(testSeed("test", 4)).toBe(42);
    expect(print).toHaveBeenCalledWith("    test: TEST_SEED=42");
  });

  test("is always the same otherwise, unless it has to be new", () => {
    delete process.env["TEST_SEED"];
    expect(testSeed("test")).toBe(testSeed("test"));
    expect(testSeed("test", 4)).toBe(4);
    expect(new Set(Array.from({ length: 10 }, () => newSeed("test"))).size).toBeGreaterThan(1);
  });

  test("must be an integer", () => {
    process.env["TEST_SEED"] = "4x";
    expect(() => testSeed("test")).toThrow("TEST_SEED=4x is not an integer");
  });
});

test("the random numbers of a key depend on the seed and the key, not on other keys", () => {
  const three = (seed: number, ...keys: readonly string[]): number[] => {
    const random = randomForKeys(seed);
    return Array.from({ length: 3 }, () => keys.map((key) => random(key).next()).at(-1) ?? 0);
  };
  expect(three(1, "a")).toEqual(three(1, "b", "a"));
  expect(new Set([...three(1, "a"), ...three(1, "b"), ...three(2, "a")]).size).toBe(9);
});
