import { describe, expect, test } from "bun:test";

import { Archive } from "./archive.ts";

const uid = "d31f2638-8b8b-4c4d-8fe5-fe7b286b81fb";

describe("an object is the same after it was packed", () => {
  const cases: readonly (readonly [what: string, object: object])[] = [
    ["empty", {}],
    ["only values", { uid, at: "2026-11-16T09:11:48Z" }],
    ["the same value several times", { a: uid, b: uid, c: { d: uid }, e: "other", f: uid }],
    ["numbers", { small: 1, large: 1234567, negative: -123456, fraction: 0.12345, exponent: 1e300 }],
    ["values as keys", { [uid]: uid, "1234": 5678 }],
    ["control characters and other scripts", { text: "a\u001fb\n\u0000 ü 漢字 😀", quote: '"1234"' }],
    ["lists", { list: [1, "2", null, true, [uid, uid], {}] }],
    ["a long text", { text: `${"x".repeat(20_000)}${uid}` }],
  ];
  for (const [what, object] of cases) {
    test(what, () => {
      const archive = new Archive<object>();
      expect(archive.unpack(archive.pack(object))).toEqual(object);
    });
  }
});

describe("words of an object are not part of its template", () => {
  const cases: readonly (readonly [what: string, words: readonly string[], object: object])[] = [
    ["names", ["team-a", "web"], { namespace: "team-a", name: "web-1", text: "web of team-a" }],
    ["one letter", ["a"], { namespace: "a", name: "banana", list: ["a", "aa"] }],
    ["one within another", ["web-1-web", "web"], { name: "web", other: "web-1-web-1" }],
    ["parts of the JSON", ["name", '"', ":", "}"], { name: "name" }],
    ["patterns of a replacement", ["$&", "$1"], { name: "$&", text: "$1 $$ $&" }],
    ["numbers and UIDs", ["12345", uid], { count: 12345, uid, text: `12345${uid}` }],
    ["more than are used", ["one", "two", "three", "four", "five", "six"], { text: "six five four three two one" }],
    ["none", [""], { name: "x" }],
  ];
  for (const [what, words, object] of cases) {
    test(what, () => {
      const archive = new Archive<object>();
      expect(archive.unpack(archive.pack(object, words), words)).toEqual(object);
    });
  }

  test("so objects of different owners share it", () => {
    const archive = new Archive<object>();
    for (const name of ["web", "database"]) archive.pack({ name: `${name}-1`, owner: { name } }, [name]);
    expect(archive.templates).toBe(1);
  });
});

test("a template of many objects is divided once, and gives the same objects", () => {
  const archive = new Archive<object>();
  const objects = Array.from({ length: 100 }, (_, index) => ({ uid, count: 1000 + index }));
  const packed = objects.map((object) => archive.pack(object));
  expect(packed.map((each) => archive.unpack(each))).toEqual(objects);
});

test("similar objects share a template, which is dropped with the last of them", () => {
  const archive = new Archive<object>();
  const packed = [uid, uid.replace("d", "e")].map((each) => archive.pack({ metadata: { uid: each, name: "x" } }));
  expect(archive.templates).toBe(1);
  for (const each of packed) archive.release(each);
  expect(archive.templates).toBe(0);
});
