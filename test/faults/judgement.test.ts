import { describe, expect, test } from "bun:test";

import { findDifference, type Fault } from "./judgement.ts";
import type { Outcome } from "./lifecycle.ts";

const expected: Outcome = {
  runs: { "destroy web": 1, "up base": 1 },
  changes: { "created Update base-HASH": 1, "deleted Stack web": 1 },
  state: ["Stack base is ready"],
  forbidden: [],
  unapproved: [],
};

const cases: readonly (readonly [string, Partial<Outcome>, Fault])[] = [
  ["a missing run", { runs: { "destroy web": 1 } }, "lost"],
  ["an additional run", { runs: { "destroy web": 1, "up base": 2 } }, "doubled"],
  ["a Stack that was deleted without a destroy", { runs: { "up base": 1 } }, "undestroyed"],
  ["a missing Update", { changes: { "deleted Stack web": 1 } }, "lost"],
  ["an additional Update", { changes: { ...expected.changes, "created Update base-HASH": 2 } }, "doubled"],
  ["another object", { changes: { ...expected.changes, "created Secret a": 1 } }, "other"],
  ["another final state", { state: ["Stack base is not ready"] }, "other"],
  ["a denied request", { forbidden: ["get updates base-HASH"] }, "forbidden"],
  ["a run without an approval", { unapproved: ["up vault ran without an Approval of its plan"] }, "unapproved"],
  ["a leftover object", { state: [...expected.state, "Secret a"] }, "other"],
];

test("a lifecycle without crashes fails if a request is denied", () => {
  const denied = { ...expected, forbidden: ["get updates base-HASH"] };
  expect(findDifference(denied, denied)?.kind).toBe("forbidden");
});

describe("a lifecycle", () => {
  test("with the same outcome has no fault", () => {
    expect(findDifference(expected, structuredClone(expected))).toBeUndefined();
  });

  for (const [what, change, fault] of cases) {
    test(`with ${what}: ${fault}`, () => {
      expect(findDifference(expected, { ...expected, ...change })?.kind).toBe(fault);
    });
  }
});
