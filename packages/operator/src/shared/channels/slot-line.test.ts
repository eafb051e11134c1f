import { describe, expect, test } from "bun:test";

import { SlotLine } from "./slot-line.ts";

/** A queue of the keys in this order, while namespaces hold these slots. */
function lineOf(keys: readonly string[], held: Readonly<Record<string, number>> = {}, limit = Infinity) {
  const counts = new Map(Object.entries(held));
  const line = new SlotLine({ held: (namespace) => counts.get(namespace) ?? 0, limit: () => limit });
  for (const [rank, key] of keys.entries()) line.add(key, { rank, since: 0 });
  const take = (): string | undefined => {
    const key = line.take();
    if (key !== undefined) counts.set(key.slice(0, 1), (counts.get(key.slice(0, 1)) ?? 0) + 1);
    return key;
  };
  const drain = (): string[] => {
    const taken: string[] = [];
    for (let key = take(); key !== undefined; key = take()) taken.push(key);
    return taken;
  };
  return { line, drain };
}

describe("the order in which slots are given", () => {
  test.each<[string, Parameters<typeof lineOf>, string[]]>([
    ["first in, first out in a namespace", [["a/1", "a/2", "a/3"]], ["a/1", "a/2", "a/3"]],
    ["namespaces take turns", [["a/1", "a/2", "a/3", "b/1", "b/2"]], ["a/1", "b/1", "a/2", "b/2", "a/3"]],
    ["a namespace that holds less comes first", [["a/1", "a/2", "b/1", "b/2"], { a: 2 }], ["b/1", "b/2", "a/1", "a/2"]],
    ["until both hold equally many", [["a/1", "a/2", "b/1", "b/2"], { a: 1 }], ["b/1", "a/1", "b/2", "a/2"]],
  ])("%s", (_, waiting, order) => {
    expect(lineOf(...waiting).drain()).toEqual(order);
  });

  test("a namespace at its limit is passed over", () => {
    const { line, drain } = lineOf(["a/1", "b/1", "b/2", "b/3"], { a: 2 }, 2);
    expect(drain()).toEqual(["b/1", "b/2"]);
    expect(line.size).toBe(2);
  });

  test("who has waited longer comes first, whenever the claim arrives", () => {
    const { line, drain } = lineOf(["a/1", "a/2"]);
    line.add("a/0", { rank: -1, since: 0 });
    line.add("a/0", { rank: 5, since: 0 });
    expect(drain()).toEqual(["a/0", "a/1", "a/2"]);
  });

  test("who is removed gets none", () => {
    const { line, drain } = lineOf(["a/1", "a/2", "b/1"]);
    line.remove("a/1");
    line.remove("b/1");
    expect([line.has("a/1"), line.has("a/2")]).toEqual([false, true]);
    expect(drain()).toEqual(["a/2"]);
  });
});

describe("the place in the queue", () => {
  test.each<[string, string[], Record<string, number>]>([
    ["of one namespace", ["a/1", "a/2", "a/3"], {}],
    ["of namespaces that take turns", ["a/1", "a/2", "a/3", "b/1", "c/1", "c/2"], {}],
    ["of namespaces that hold different numbers", ["a/1", "a/2", "a/3", "b/1", "b/2", "c/1"], { a: 2, c: 1 }],
  ])("is when the slot comes: %s", (_, keys, held) => {
    const { line, drain } = lineOf(keys, held);
    const places = new Map(keys.map((key) => [line.placeOf(key).position, key]));
    const order = drain();
    expect(order.map((_key, index) => places.get(index + 1))).toEqual(order);
  });

  test("does not count who is behind because of a limit", () => {
    const { line } = lineOf(["a/1", "a/2", "b/1", "b/2"], { a: 2 }, 2);
    expect(line.placeOf("b/2")).toEqual({ position: 2, total: 4 });
    expect(line.placeInNamespace("a/2")).toEqual({ position: 2, total: 2 });
  });
});
