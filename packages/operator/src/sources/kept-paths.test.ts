import { expect, test } from "bun:test";

import { exceeding, sizeOf, type KeptPaths } from "./kept-paths.ts";

const kept = (namespace: string, bytes: number): KeptPaths => ({ namespace, bytes });

const cases: readonly (readonly [string, readonly KeptPaths[], readonly number[]])[] = [
  ["nothing", [kept("a", 50), kept("b", 50)], []],
  ["the largest", [kept("a", 40), kept("a", 50), kept("a", 20)], [50]],
  ["as many as necessary", [kept("a", 90), kept("a", 80), kept("a", 70)], [90, 80]],
  ["those of the namespace that has the most", [kept("a", 60), kept("b", 40), kept("b", 30)], [40]],
  ["one that does not fit alone", [kept("a", 101)], [101]],
];
test.each(cases)("of 100 bytes, it leaves out %s", (_, all, dropped) => {
  expect(exceeding(all, 100).map(({ bytes }) => bytes)).toEqual([...dropped]);
});

test("each path counts, and a result without paths does not", () => {
  expect(sizeOf({ kind: "compared", paths: ["a".repeat(100), ""] })).toBe(164);
  expect(sizeOf({ kind: "unknown", reason: "" })).toBe(0);
});
