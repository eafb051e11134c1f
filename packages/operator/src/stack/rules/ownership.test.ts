import { expect, test } from "bun:test";

import * as messages from "../messages.ts";
import { anUpdate, now, succeeded, viewOf } from "../testing/views.ts";
import { planStack } from "./index.ts";

const occupant = { kind: "Workspace", namespace: "default", name: "web" };

test.each([
  ["denied", "WorkspaceFailed", "The API server rejected a request: exceeded quota"],
  ["invalid", "SpecInvalid", "exceeded quota"],
  ["namespaceTerminating", "NamespaceTerminating", messages.namespaceTerminating],
] as const)("reports a write that was rejected as %s, and retries in a minute", (kind, reason, message) => {
  const view = viewOf({ last: succeeded({ name: "web-now" }), updates: [anUpdate({ state: "succeeded" })] });
  expect(planStack({ ...view, rejection: { kind, explanation: "exceeded quota" } })).toEqual({
    steps: [],
    outcome: { kind: "stalled", reason, message },
    requeueAt: now + 60_000,
  });
});

test("is stalled by another owner's object that has a name that the Stack needs", () => {
  expect(planStack({ ...viewOf({}), occupied: { kind: "foreign", occupant } })).toMatchObject({
    steps: [],
    outcome: { kind: "stalled", reason: "OwnershipConflict" },
    requeueAt: now + 15_000,
  });
});

test("checks less often the longer the name is taken", () => {
  const view = {
    ...viewOf({}),
    occupied: { kind: "foreign", occupant },
    obstacle: { reason: "OwnershipConflict", since: now - 400_000 },
  } as const;
  expect(planStack(view).requeueAt).toBe(now + 100_000);
});

test("waits for the garbage collector if the owner was an earlier Stack of the same name", () => {
  expect(planStack({ ...viewOf({}), occupied: { kind: "former", occupant } })).toMatchObject({
    outcome: { kind: "processing", waitingFor: "the garbage collector" },
    requeueAt: now + 5000,
  });
});
