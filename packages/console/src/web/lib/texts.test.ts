import { describe, expect, test } from "bun:test";

import { parsePlan } from "./plan.ts";
import { missingPermission } from "./permission.ts";
import { searchLog, splitMatches, withoutEscapes } from "./search-log.ts";
import { toYaml } from "./to-yaml.ts";
import { rowAfterKey, tabStop, visibleRange } from "./visible-range.ts";

describe("YAML", () => {
  const value = {
    apiVersion: "pulumi.com/v1",
    text: "a: b",
    yes: "yes",
    number: 3,
    numeric: "3",
    empty: "",
    list: [{ a: 1, b: [2] }, "x"],
    nothing: {},
    none: [],
    block: "one\ntwo\n",
    unterminated: "one\ntwo",
    absent: undefined,
    'quote"d': null,
  };

  test("is read as what it was", () => {
    const { absent: _, ...rest } = value;
    expect(Bun.YAML.parse(toYaml(value))).toEqual(rest);
  });

  test("looks as kubectl prints it", () => {
    expect(toYaml({ spec: { list: [{ a: "x", b: "z" }], text: "one\ntwo\n" } })).toBe(
      ["spec:", "  list:", "  - a: x", "    b: z", "  text: |", "    one", "    two", ""].join("\n"),
    );
  });
});

describe("the summary of a plan", () => {
  test("has its headline, the dangerous changes first, and what is left out", () => {
    const summary = "1 to delete, 1 to create\ncreate   a:b:C x y\ndelete   a:b:C z\n… and 3 more: 3 to create";
    expect(parsePlan(summary)).toEqual({
      headline: "1 to delete, 1 to create",
      changes: [
        { op: "delete", text: "a:b:C z", tone: "danger" },
        { op: "create", text: "a:b:C x y", tone: "create" },
      ],
      rest: "… and 3 more: 3 to create",
    });
  });

  test("of an earlier agent is counted here", () => {
    expect(parsePlan("create   a\ncreate   b\nreplace  c").headline).toBe("1 to replace, 2 to create");
    expect(parsePlan("").headline).toBe("no changes");
  });
});

describe("the missing permission", () => {
  test.each([
    [
      'stacks.pulumi.com is forbidden: User "a" cannot list resource "stacks" in API group "pulumi.com" at the cluster scope',
      "list stacks.pulumi.com in all namespaces",
    ],
    [
      'pods "x" is forbidden: User "a" cannot get resource "pods/log" in API group "" in the namespace "shop"',
      "get pods/log in namespace shop",
    ],
    ["admission webhook denied the request", undefined],
  ])("%s", (message, permission) => expect(missingPermission(message)).toBe(permission as string));
});

describe("the log", () => {
  test("is searched in any case, and keeps the numbers of its lines", () => {
    expect(searchLog(["One", "two", "ONE more"], "one")).toEqual([
      { line: 1, text: "One" },
      { line: 3, text: "ONE more" },
    ]);
    expect(searchLog(["a", "b"], "")).toHaveLength(2);
  });

  test("marks every match", () => {
    expect(splitMatches("abcABC", "b")).toEqual([
      { text: "a", isMatch: false },
      { text: "b", isMatch: true },
      { text: "cA", isMatch: false },
      { text: "B", isMatch: true },
      { text: "C", isMatch: false },
    ]);
  });

  test("has no colors", () => expect(withoutEscapes("\u001B[31mred\u001B[0m")).toBe("red"));
});

describe("the visible rows", () => {
  const rows = { height: 500, rowHeight: 50, rowCount: 1000 };

  test.each([
    ["at the top", { ...rows, scrollTop: 0 }, { from: 0, to: 20 }],
    ["in the middle", { ...rows, scrollTop: 5000 }, { from: 90, to: 120 }],
    ["at the end", { ...rows, scrollTop: 49_500 }, { from: 980, to: 1000 }],
    ["after a filter has shortened the list", { ...rows, rowCount: 3, scrollTop: 49_500 }, { from: 2, to: 3 }],
    ["of nothing", { ...rows, rowCount: 0, scrollTop: 0 }, { from: 0, to: 0 }],
  ])("%s", (_, viewport, range) => expect(visibleRange(viewport)).toEqual(range));
});

describe("a long list is one stop of the Tab key", () => {
  const range = { from: 90, to: 130 };
  test.each([
    ["the row that had the focus last", 95, 95],
    ["the first visible row, if that is no longer rendered", 3, 100],
    ["the first visible row, if that is not rendered yet", 500, 100],
  ])("%s", (_, last, row) => expect(tabStop(range, { scrollTop: 5600, rowHeight: 56, last })).toBe(row));

  test.each([
    ["ArrowDown", 5, 6],
    ["ArrowDown", 99, 99],
    ["ArrowUp", 0, 0],
    ["PageDown", 95, 99],
    ["PageUp", 50, 40],
    ["Home", 50, 0],
    ["End", 50, 99],
    ["Enter", 50, undefined],
  ])("%s at row %d", (key, index, row) => expect(rowAfterKey(key, index, 100)).toBe(row));
});
