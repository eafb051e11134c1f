import { describe, expect, test } from "bun:test";

import { differenceOf, type Fault } from "./judgement.ts";
import type { Outcome } from "./life.ts";

const calm: Outcome = {
  runs: { "destroy web": 1, "up base": 1 },
  changes: { "created Update base-HASH": 1, "deleted Stack web": 1 },
  state: ["Stack base is ready"],
  forbidden: [],
};

const cases: readonly (readonly [string, Partial<Outcome>, Fault])[] = [
  ["a run that is missing", { runs: { "destroy web": 1 } }, "lost"],
  ["a run too many", { runs: { "destroy web": 1, "up base": 2 } }, "doubled"],
  ["a Stack that went without its destroy", { runs: { "up base": 1 } }, "undestroyed"],
  ["an Update that is missing", { changes: { "deleted Stack web": 1 } }, "lost"],
  ["an Update too many", { changes: { ...calm.changes, "created Update base-HASH": 2 } }, "doubled"],
  ["another object", { changes: { ...calm.changes, "created Secret a": 1 } }, "other"],
  ["another end", { state: ["Stack base is not ready"] }, "other"],
  ["a request that is denied", { forbidden: ["get updates base-HASH"] }, "forbidden"],
  ["an object that is left over", { state: [...calm.state, "Secret a"] }, "other"],
];

test("a life without crashes has a fault of its own when a request is denied", () => {
  const denied = { ...calm, forbidden: ["get updates base-HASH"] };
  expect(differenceOf(denied, denied)?.kind).toBe("forbidden");
});

describe("a life", () => {
  test("that is the same has no fault", () => {
    expect(differenceOf(calm, structuredClone(calm))).toBeUndefined();
  });

  for (const [what, change, fault] of cases) {
    test(`with ${what}: ${fault}`, () => {
      expect(differenceOf(calm, { ...calm, ...change })?.kind).toBe(fault);
    });
  }
});
