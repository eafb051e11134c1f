import { describe, expect, test } from "bun:test";

import { stackEventsFor } from "../events.ts";
import { stackStatus } from "../status.ts";
import {
  aTrigger,
  anUpdate,
  cases,
  failed,
  messageFor,
  now,
  succeeded,
  viewOf,
  type Setting,
} from "../testing/views.ts";
import { planStack } from "./index.ts";

const suspend = { spec: { suspend: true } } as const;
const everything = { operatorSuspended: true } as const;
const pending = { source: { kind: "pending", what: "the end of the suspension" } } as const;
const destroying = { deleting: true, last: succeeded() } as const;

cases("nothing starts while", [
  ["a new Stack is suspended", suspend, "none: Suspended"],
  ["the operator is suspended", everything, "none: Suspended"],
  ["a Stack that is up to date is suspended", { ...suspend, last: succeeded() }, "none: Suspended"],
  ["an update is requested", { ...suspend, last: succeeded(), request: "now" }, "none: Suspended"],
  ["a retry is due", { ...everything, last: failed({ lastResyncTime: "2020-01-01T00:00:00Z" }) }, "none: Suspended"],
  ["the spec is invalid, too", { spec: { suspend: true, stack: "" } }, "none: Suspended"],
  ["the source is not read", { ...suspend, ...pending, last: succeeded() }, "none: Suspended"],
  ["the Workspace has another owner", { ...suspend, workspace: "foreign" }, "none: Suspended"],
  [
    "a suspended Stack whose resources must be destroyed is deleted",
    { ...destroying, spec: { suspend: true, destroyOnFinalize: true } },
    "none: Suspended",
  ],
  [
    "a Stack is deleted while the operator is suspended",
    { ...destroying, ...everything, spec: { destroyOnFinalize: true } },
    "none: Suspended",
  ],
]);

cases("a suspended Stack still", [
  ["gets its finalizer", { ...suspend, finalizer: false }, "addFinalizer: unchanged"],
  ["is removed at once without a destroy", { ...destroying, ...suspend }, "removeFinalizer: unchanged"],
  [
    "is removed at once if nothing was deployed",
    { deleting: true, spec: { suspend: true, destroyOnFinalize: true } },
    "removeFinalizer: unchanged",
  ],
  ["waits for a running update", { ...suspend, updates: [anUpdate({ startedAt: now })] }, "none: StackProcessing"],
  [
    "records the result of an update that ran meanwhile",
    { ...suspend, updates: [anUpdate({ state: "succeeded", startedAt: now, endedAt: now })] },
    "recordResult: Ready",
  ],
  [
    "withdraws an update that has not started",
    { ...suspend, updates: [anUpdate()] },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "withdraws a destroy that has not started",
    {
      ...destroying,
      spec: { suspend: true, destroyOnFinalize: true },
      updates: [anUpdate({ type: "destroy", trigger: aTrigger({ type: "destroy" }) })],
    },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "waits for an update that is being withdrawn",
    { ...everything, updates: [anUpdate({ deleting: true })] },
    "none: StackProcessing",
  ],
]);

describe("the message of a suspended Stack", () => {
  const remedy = {
    stack: "set spec.suspend to false",
    operator: "remove the annotation pulumi.com/suspend from Lease",
  };
  const table: readonly (readonly [string, Setting, string])[] = [
    [
      "names the field",
      suspend,
      `The Stack is suspended, because spec.suspend is true: nothing starts. To resume it, ${remedy.stack}.`,
    ],
    [
      "names the Lease",
      everything,
      `because the operator is suspended: nothing starts. To resume it, ${remedy.operator}`,
    ],
    ["names both", { ...suspend, ...everything }, `${remedy.stack}, and ${remedy.operator}`],
    [
      "shows that nothing is destroyed",
      { ...destroying, spec: { suspend: true, destroyOnFinalize: true } },
      "its resources are not destroyed and it is not deleted. To resume it",
    ],
    [
      "shows what a running update is followed by",
      { ...suspend, updates: [anUpdate({ startedAt: now })] },
      "nothing starts when it ends, because the Stack is suspended",
    ],
  ];
  for (const [sentence, setting, text] of table) test(sentence, () => expect(messageFor(setting)).toContain(text));
});

test("a suspended Stack is not requeued, and its status shows since when it waits", () => {
  const view = viewOf(suspend);
  const plan = planStack(view);
  expect(plan.requeueAt).toBeUndefined();
  expect(stackStatus(view, plan).waiting).toEqual({ for: "the end of the suspension", since: "2030-01-01T12:00:00Z" });
});

function eventsOf(setting: Setting): string[] {
  const view = viewOf(setting);
  return stackEventsFor(view, planStack(view)).map(({ reason }) => reason);
}

function statusOf(setting: Setting): NonNullable<Setting["status"]> {
  const view = viewOf(setting);
  return stackStatus(view, planStack(view));
}

test("one event reports the suspension, and one its end", () => {
  const suspended = { last: succeeded(), status: statusOf({ ...suspend, last: succeeded() }) };
  expect(eventsOf({ ...suspend, last: succeeded() })).toEqual(["StackSuspended"]);
  expect(eventsOf({ ...suspend, ...suspended })).toEqual([]);
  expect(eventsOf({ ...everything, ...suspended })).toEqual([]);
  expect(eventsOf(suspended)).toEqual(["StackResumed"]);
  expect(eventsOf({ last: succeeded(), status: statusOf(suspended) })).toEqual([]);
});

test("a Stack that was resumed is not shown as suspended while its source is read", () => {
  const status = statusOf({ ...everything, last: succeeded() });
  expect(messageFor({ ...pending, last: succeeded(), status })).toBe("Waiting for the end of the suspension.");
});
