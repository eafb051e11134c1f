import { expect, test } from "bun:test";

import type { StackStatus } from "@pko/api";

import { planStack } from "./rules/index.ts";
import { stackStatus, withoutProgress } from "./status.ts";
import { succeeded, viewOf } from "./testing/views.ts";

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

test("what another controller reports about pull requests stays, whatever happens to the Stack", () => {
  const pullRequests = [{ number: 7, commit: "c1", stack: "web-pr-7", state: "Running" as const }];
  const previewed = condition("PullRequestsPreviewed", "PreviewsCurrent", "1 open pull request has a preview.");
  const cancelledPreviews = [{ number: 7, commit: "c0" }];
  const status = { pullRequests, cancelledPreviews, conditions: [previewed] };
  const settings = [{ status }, { status, last: succeeded() }, { status, spec: { suspend: true } }];
  for (const view of settings.map((setting) => viewOf(setting))) {
    const { pullRequests: after, cancelledPreviews: cancelled, conditions } = stackStatus(view, planStack(view));
    expect([after, cancelled, conditions?.at(-1)]).toEqual([pullRequests, cancelledPreviews, previewed]);
  }
});
