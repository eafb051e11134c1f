import { describe, expect, test } from "bun:test";

import { resource } from "@pko/kube";

import { anObject, atGeneration, having } from "./builders.ts";
import { checkStatus, statusFaults, type Condition, type StatusBearing } from "./check-status.ts";

const stacks = resource<StatusBearing>({
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  plural: "stacks",
  namespaced: true,
});
const updates = { ...stacks, kind: "Update" };

function condition(type: string, changes: Partial<Condition> = {}): Condition {
  return {
    type,
    status: "True",
    reason: "Because",
    message: "text",
    lastTransitionTime: "2030-01-01T00:00:00Z",
    ...changes,
  };
}
const stack = (...conditions: Condition[]): StatusBearing =>
  anObject(stacks, "s", atGeneration(2), having({ status: { conditions, observedGeneration: 2 } }));
const notReady = condition("Ready", { status: "False" });

describe("a valid status", () => {
  const cases: [string, StatusBearing][] = [
    ["none yet", anObject(stacks, "s")],
    ["ready", stack(condition("Ready"))],
    ["reconciling", stack(notReady, condition("Reconciling"))],
    ["stalled", stack(notReady, condition("Stalled"))],
    ["a running update", anObject(updates, "u", having({ status: { conditions: [condition("Progressing")] } }))],
  ];
  for (const [name, object] of cases) test(name, () => expect(statusFaults(object)).toEqual([]));
});

describe("an invalid status", () => {
  const running = [condition("Progressing"), condition("Complete")];
  const cases: [string, StatusBearing, string][] = [
    ["a lower-case reason", stack(condition("Ready", { reason: "because" })), 'the reason "because"'],
    ["no reason", stack(condition("Ready", { reason: "" })), 'the reason ""'],
    ["no message", stack(condition("Ready", { message: "" })), "no message"],
    ["an unknown status", stack(condition("Ready", { status: "Maybe" })), 'the status "Maybe"'],
    ["no time", stack(condition("Ready", { lastTransitionTime: "" })), "no lastTransitionTime"],
    ["a duplicate type", stack(condition("Ready"), condition("Ready")), "Ready is set twice"],
    ["a future generation", stack(condition("Ready", { observedGeneration: 3 })), "generation 3 of 2"],
    ["ready and reconciling", stack(condition("Ready"), condition("Reconciling")), "while Ready is True"],
    ["not ready without a reason", stack(notReady), "neither Reconciling nor Stalled"],
    ["both reasons", stack(notReady, condition("Reconciling"), condition("Stalled")), "both Reconciling and Stalled"],
    [
      "a reason with status False",
      stack(notReady, condition("Stalled", { status: "False" })),
      "Stalled is set and not True",
    ],
    ["no Ready", stack(condition("Stalled")), "Ready is missing"],
    [
      "running and finished",
      anObject(updates, "u", having({ status: { conditions: running } })),
      "Progressing and finished",
    ],
  ];
  for (const [name, object, fault] of cases) {
    test(name, () => {
      expect(statusFaults(object).join()).toContain(fault);
      expect(() => checkStatus(object)).toThrow(fault);
    });
  }
});

describe("changes of a status", () => {
  const later = { lastTransitionTime: "2030-01-01T00:00:05Z" };
  test("lastTransitionTime changes only when the status changes", () => {
    const before = stack(notReady, condition("Reconciling"));
    expect(statusFaults(stack(condition("Ready", later)), before)).toEqual([]);
    expect(statusFaults(stack({ ...notReady, ...later }, condition("Reconciling")), before)).toEqual([
      "Ready changed its lastTransitionTime, but not its status",
    ]);
    expect(statusFaults(stack(condition("Ready", { lastTransitionTime: "2029-01-01T00:00:00Z" })), before)).toEqual([
      "Ready changed its status in the past",
    ]);
  });

  test("the observed generation never decreases", () => {
    const before = anObject(stacks, "s", atGeneration(2), having({ status: { observedGeneration: 2 } }));
    const after = anObject(stacks, "s", atGeneration(2), having({ status: { observedGeneration: 1 } }));
    expect(statusFaults(after, before)).toEqual(["the observed generation went back from 2 to 1"]);
  });
});
