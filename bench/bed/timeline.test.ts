import { expect, test } from "bun:test";

import { phases, phasesOf } from "./timeline.ts";

test("the phases of a timeline add up to the whole, whichever milestones were seen and in whatever order", () => {
  const reached = new Map([
    ["Workspace made", 130],
    // Seen after the Workspace, though it comes before it.
    ["the operator has seen it", 140],
    ["pod made", 200],
    ["Stack succeeded", 1000],
  ]);
  const found = phasesOf(reached, 100);
  expect(found.map(({ name }) => name)).toEqual([...phases]);
  expect(found.reduce((sum, { ms }) => sum + ms, 0)).toBe(900);
  expect(found.slice(0, 3).map(({ ms }) => ms)).toEqual([40, 0, 60]);
});
