import { createHash } from "node:crypto";

import { expect, test } from "bun:test";

import { jittered, pauseMs } from "./pauses.ts";

/** As random as real ones, and the same in each run. */
function uid(index: number): string {
  const digits = createHash("sha256").update(`object ${index}`).digest("hex");
  return digits.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, "$1-$2-4$3-8$4-$5");
}

const ids = Array.from({ length: 1000 }, (_, index) => uid(index));

test("jitter is at most 10 %, the same for the same UID, and different for others", () => {
  const all = ids.map((id) => jittered(1000, id));
  expect(Math.min(...all)).toBeGreaterThanOrEqual(900);
  expect(Math.max(...all)).toBeLessThanOrEqual(1100);
  expect(ids.map((id) => jittered(1000, id))).toEqual(all);
  // A thousand Stacks with one interval do not run at once: no twentieth of the range has more than twice its share.
  const counts = Map.groupBy(all, (ms) => Math.floor((ms - 900) / 10));
  expect(Math.max(...[...counts.values()].map(({ length }) => length))).toBeLessThan(100);
});

test.each([
  ["is short at first", 0, 15_000],
  ["is a quarter of the time that has passed", 400_000, 100_000],
  ["has a limit", 10_000_000, 300_000],
])("a pause %s", (_, sinceMs, expected) => {
  const pause = pauseMs({ sinceMs, id: "uid-of-web-3833" }, { least: 15_000, most: 300_000 });
  expect(pause).toBe(expected);
});
