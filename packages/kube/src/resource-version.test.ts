import { expect, test } from "bun:test";

import { isNewer, newest } from "./resource-version.ts";

test("numbers have an order, however long", () => {
  expect(isNewer("10", "9")).toBe(true);
  expect(isNewer("9", "10")).toBe(false);
  expect(isNewer("10", "10")).toBe(false);
  expect(isNewer("18446744073709551615", "18446744073709551614")).toBe(true);
  expect(newest("9", "10")).toBe("10");
});

test("of others we only know whether they differ", () => {
  expect(isNewer("b", "a")).toBe(true);
  expect(isNewer("a", "b")).toBe(true);
  expect(isNewer("a", "a")).toBe(false);
});
