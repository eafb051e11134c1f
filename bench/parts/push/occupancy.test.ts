import { expect, test } from "bun:test";

import { SlotWatch } from "./occupancy.ts";

test("the most slots in use at a time are counted, in all and in the busiest namespace", () => {
  const watch = new SlotWatch();
  watch.start("a/1", 0);
  watch.start("a/2", 10);
  watch.start("b/1", 20);
  // A second sight of the same object.
  watch.start("a/1", 25);
  watch.end("a/1", 30);
  watch.start("b/2", 40);
  watch.start("a/1", 45);
  for (const key of ["a/2", "b/1", "b/2", "unknown/1"]) watch.end(key, 50);
  expect(watch.result).toEqual({ most: 3, mostInNamespace: 2, heldMs: [30, 40, 30, 10] });
  expect(watch.ended).toBe(4);
});
