import type { Condition, Update } from "@pko/api";
import { describe, expect, test } from "bun:test";

import { endTimeOf, restsUntil } from "./updates.ts";

const condition = (type: string, status: Condition["status"], lastTransitionTime: string): Condition => ({
  type,
  status,
  reason: "Reason",
  message: "",
  lastTransitionTime,
});

const cases: readonly (readonly [string, Update["status"], string | undefined])[] = [
  ["its recorded end", { endTime: "t1", conditions: [condition("Complete", "True", "t2")] }, "t1"],
  ["the time of Complete if no end is recorded", { conditions: [condition("Complete", "True", "t2")] }, "t2"],
  [
    "the time of Failed if it never became Complete",
    { conditions: [condition("Complete", "False", "t1"), condition("Failed", "True", "t2")] },
    "t2",
  ],
  [
    "unknown while it is unfinished",
    { conditions: [condition("Complete", "False", "t1"), condition("Failed", "False", "t1")] },
    undefined,
  ],
  ["unknown without a status", undefined, undefined],
];

describe("the end of an Update is", () => {
  test.each(cases)("%s", (_, status, expected) => {
    const update: Update = {
      apiVersion: "auto.pulumi.com/v1alpha1",
      kind: "Update",
      metadata: {},
      ...(status && { status }),
    };
    expect(endTimeOf(update)).toBe(expected);
  });
});

describe("a complete Update is at rest", () => {
  const complete = { conditions: [condition("Complete", "True", "2030-01-01T00:00:00Z")] };
  const plan = { digest: "d", secretNames: [], changes: true, destructive: false, unknownInputs: 0, summary: "" };
  test.each([
    ["without a report", {}, true],
    ["if its result is reported", { report: { state: "success" } }, true],
    ["if it is reported what became of its plan", { report: { state: "error" }, plan }, true],
    ["but not while the forge shows that its plan is not applied", { report: { state: "pending" }, plan }, false],
    ["but not while the forge shows that it runs", { report: { state: "running" } }, false],
    ["but not while the forge shows that it waits", { report: { state: "pending" } }, false],
    ["but not if nothing about its result is reported yet", { report: { due: true } }, false],
    ["but not if the report has failed", { report: { state: "success", problem: "Unavailable" } }, false],
  ] satisfies readonly (readonly [string, Update["status"], boolean])[])("%s", (_, status, expected) => {
    const update: Update = {
      apiVersion: "auto.pulumi.com/v1alpha1",
      kind: "Update",
      metadata: {},
      status: { ...complete, ...status },
    };
    expect(restsUntil(update) !== undefined).toBe(expected);
  });
});
