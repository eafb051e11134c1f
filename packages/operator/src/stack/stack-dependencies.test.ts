import { expect, test } from "bun:test";

import { cycleFrom } from "./stack-dependencies.ts";

test("finds a dependency cycle, also behind a fork", () => {
  const edges: Record<string, string[]> = { a: ["b", "c"], b: ["d"], c: ["a"], d: ["b"] };
  expect(cycleFrom("a", (name) => edges[name] ?? [])).toEqual(["a", "c", "a"]);
  expect(cycleFrom("x", () => [])).toEqual([]);
});
