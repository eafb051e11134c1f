import { expect, test } from "bun:test";

import { canonicalJson } from "./canonical-json.ts";

test("keys are sorted at any depth, whether or not they were before", () => {
  const expected = '{"a":[{"x":1,"y":2}],"b":{"c":null,"d":"text"}}';
  expect(canonicalJson({ a: [{ x: 1, y: 2 }], b: { c: null, d: "text" } })).toBe(expected);
  expect(canonicalJson({ b: { d: "text", c: null }, a: [{ y: 2, x: 1 }] })).toBe(expected);
});

test("a field that is undefined is left out, and keys of digits are first, in the order of their numbers", () => {
  expect(canonicalJson({ b: undefined, a: 1 })).toBe('{"a":1}');
  expect(canonicalJson({ b: 1, 10: "ten", 9: "nine" })).toBe('{"9":"nine","10":"ten","b":1}');
  expect(canonicalJson(undefined)).toBe("null");
});
