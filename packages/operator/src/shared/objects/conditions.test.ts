import { expect, test } from "bun:test";
import type { Condition } from "@pko/api";

import { conditionAt, findCondition, isConditionTrue } from "./conditions.ts";

const now = Date.parse("2026-01-02T03:04:05.678Z");
const ready: Condition = {
  type: "Ready",
  status: "True",
  reason: "Succeeded",
  message: "",
  lastTransitionTime: "2026-01-01T00:00:00Z",
};
const object = { metadata: { generation: 4 }, status: { conditions: [ready] } };

test("a condition is found by its type", () => {
  expect(findCondition(object, "Ready")).toBe(ready);
  expect([isConditionTrue(object, "Ready"), isConditionTrue(object, "Stalled")]).toEqual([true, false]);
});

test("the transition time changes only with the status", () => {
  const same = conditionAt(object, { type: "Ready", status: "True", reason: "Other", message: "new" }, now);
  expect(same).toMatchObject({ reason: "Other", lastTransitionTime: "2026-01-01T00:00:00Z", observedGeneration: 4 });
  const changed = conditionAt(object, { type: "Ready", status: "False", reason: "Other", message: "new" }, now);
  expect(changed.lastTransitionTime).toBe("2026-01-02T03:04:05Z");
});
