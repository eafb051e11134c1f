import { expect, test } from "bun:test";

import { allDependencies, cycleFrom } from "./stack-dependencies.ts";

test("finds a dependency cycle, also behind a fork", () => {
  const edges: Record<string, string[]> = { a: ["b", "c"], b: ["d"], c: ["a"], d: ["b"] };
  expect(cycleFrom("a", (name) => edges[name] ?? [])).toEqual(["a", "c", "a"]);
  expect(cycleFrom("x", () => [])).toEqual([]);
});

test("finds all dependencies, also in a cycle", () => {
  const edges: Record<string, string[]> = { a: ["b"], b: ["c", "d"], c: ["b"], e: ["a"] };
  const below = (start: string) => [...allDependencies(start, (name) => edges[name] ?? [])].toSorted();
  expect(below("a")).toEqual(["b", "c", "d"]);
  expect(below("c")).toEqual(["b", "c", "d"]);
  expect(below("d")).toEqual([]);
});
