import { describe, expect, test } from "bun:test";

import { usesColor } from "../io.ts";
import { absolute, duration, relative } from "./time.ts";
import { printable, wrap } from "./wrap.ts";

describe("wrap", () => {
  test.each([
    ["short text stays", "one two", 20, ["one two"]],
    ["words move to the next line", "one two three", 10, ["one two", "three"]],
    ["line breaks and indentation stay", "a\n  one two three", 12, ["a", "  one two", "  three"]],
    [
      "a long word is not split",
      "see https://example.com/very/long here",
      12,
      ["see", "https://example.com/very/long", "here"],
    ],
    ["wide characters count twice", "日本 日本 日本", 10, ["日本 日本", "日本"]],
    ["an empty text is an empty line", "", 10, [""]],
  ])("%s", (...[, text, limit, lines]) => expect(wrap(text, limit)).toEqual(lines));
});

test("control sequences are removed, line breaks and tabs stay", () => {
  expect(printable("a\u001B[31mb\u001B[0m\tc\nd\u0007")).toBe("ab\tc\nd");
});

describe("durations", () => {
  test.each([
    [0, "0s"],
    [59_000, "59s"],
    [90_000, "1m30s"],
    [600_000, "10m"],
    [3_600_000, "1h"],
    [5_400_000, "1h30m"],
    [90_000_000, "1d1h"],
    [864_000_000, "10d"],
  ])("%d ms is %s", (ms, text) => expect(duration(ms)).toBe(text));

  test("times relative to now", () => {
    const now = Date.UTC(2030, 0, 1);
    expect(relative("2029-12-31T23:59:00Z", now)).toBe("1m ago");
    expect(absolute("2030-01-01T02:00:00Z", now)).toBe("2030-01-01T02:00:00Z (in 2h)");
    expect(relative(undefined, now)).toBe("");
  });
});

describe("color", () => {
  test.each([
    ["on a terminal", {}, true, true],
    ["not in a pipe", {}, false, false],
    ["not with NO_COLOR", { NO_COLOR: "1" }, true, false],
    ["not on a dumb terminal", { TERM: "dumb" }, true, false],
    ["with an empty NO_COLOR", { NO_COLOR: "" }, true, true],
  ])("%s", (...[, env, isTerminal, color]) => expect(usesColor(env, isTerminal)).toBe(color));
});
