import type { Condition, Update } from "@pko/api";
import { describe, expect, test } from "bun:test";

import { endTimeOf } from "./updates.ts";

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
