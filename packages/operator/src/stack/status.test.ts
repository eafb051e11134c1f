import { expect, test } from "bun:test";

import type { StackStatus } from "@pko/api";

import { withoutProgress } from "./status.ts";

const condition = (type: string, reason: string, message: string) => ({
  type,
  status: "True" as const,
  reason,
  message,
  lastTransitionTime: "2030-01-01T00:00:00Z",
});
const reconciling = (reason: string, message: string): StackStatus => ({
  observedGeneration: 1,
  conditions: [condition("Reconciling", reason, message)],
  waiting: { for: message, since: "2030-01-01T00:00:00Z" },
});
const processing = reconciling("StackProcessing", "the pod is starting");

const cases: Readonly<Record<string, readonly [StackStatus, boolean]>> = {
  "another message": [reconciling("StackProcessing", "the pod is running"), true],
  "another state": [reconciling("Suspended", "the pod is starting"), false],
  "a new Update": [{ ...processing, currentUpdate: { name: "web-1" } }, false],
  "another generation": [{ ...processing, observedGeneration: 2 }, false],
};
for (const [name, [after, isProgress]] of Object.entries(cases)) {
  test(`${name} is ${isProgress ? "" : "more than "}progress of a Stack that is processed`, () => {
    expect(Bun.deepEquals(withoutProgress(after), withoutProgress(processing))).toBe(isProgress);
  });
}

test("each message of a Stack that waits for something else matters", () => {
  const [one, two] = ["one", "two"].map((message) => withoutProgress(reconciling("PrerequisiteNotSatisfied", message)));
  expect(one).not.toEqual(two ?? {});
});
