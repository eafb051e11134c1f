import { describe, expect, test } from "bun:test";

import { covers, mergeTemplate } from "./merge.ts";

describe("merging a template", () => {
  const cases: [string, object, object, object][] = [
    ["adds a field", { a: 1 }, { b: 2 }, { a: 1, b: 2 }],
    ["replaces a field", { a: 1 }, { a: 2 }, { a: 2 }],
    ["removes a field", { a: 1, b: 2 }, { a: null }, { b: 2 }],
    ["merges nested objects", { a: { b: 1, c: 2 } }, { a: { b: 3 } }, { a: { b: 3, c: 2 } }],
    [
      "merges lists by the key of their items",
      { env: [{ name: "A", value: "1" }] },
      { env: [{ name: "B" }, { name: "A", value: "2" }] },
      { env: [{ name: "A", value: "2" }, { name: "B" }] },
    ],
    ["replaces other lists", { args: [1, 2] }, { args: [3] }, { args: [3] }],
    ["replaces another type", { a: { b: 1 } }, { a: "x" }, { a: "x" }],
  ];
  for (const [what, base, overlay, result] of cases) {
    test(what, () => expect(mergeTemplate({ ...base }, { ...overlay })).toEqual({ ...result }));
  }

  test("null is covered by a missing field only", () => {
    expect(covers({ a: 1 }, { a: 1, b: null })).toBe(true);
    expect(covers({ b: 1 }, { b: null })).toBe(false);
  });
});
