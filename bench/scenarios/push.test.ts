import { expect, test } from "bun:test";

import { findings } from "./push.ts";

test("the figures show that all Stacks are deployed, the slots in use, and how long another tenant waits", () => {
  const { figures } = findings({
    stacks: 30,
    deployed: 29,
    durationMs: 60_000,
    most: 20,
    mostInNamespace: 8,
    heldMs: [1000, 3000, 2000],
    quietMs: [100],
    crowdedMs: [200, 1500],
  });
  expect(figures.map(({ id, values }) => [id, Math.max(...values)])).toEqual([
    ["push.deployed", 29],
    ["push.duration", 60_000],
    ["push.slots", 20],
    ["push.slots.namespace", 8],
    ["push.held", 3000],
    ["push.quiet", 100],
    ["push.crowded", 1500],
  ]);
  expect(figures[0]?.note).toBe("30 Stacks");
});
