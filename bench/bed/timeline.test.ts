import { expect, test } from "bun:test";

import { phases, splitPhases } from "./timeline.ts";

test("the phases of a timeline add up to the whole, even if milestones are missing or out of order", () => {
  const reached = new Map([
    ["Workspace created", 130],
    // Observed after the Workspace, although it comes before it.
    ["reconciled for the first time", 140],
    ["pod created", 200],
    ["Stack succeeded", 1000],
  ]);
  const found = splitPhases(reached, 100);
  expect(found.map(({ name }) => name)).toEqual([...phases]);
  expect(found.reduce((sum, { ms }) => sum + ms, 0)).toBe(900);
  expect(found.slice(0, 3).map(({ ms }) => ms)).toEqual([40, 0, 60]);
});
