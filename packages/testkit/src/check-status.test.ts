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
    message: "words",
    lastTransitionTime: "2030-01-01T00:00:00Z",
    ...changes,
  };
}
const stack = (...conditions: Condition[]): StatusBearing =>
  anObject(stacks, "s", atGeneration(2), having({ status: { conditions, observedGeneration: 2 } }));
const notReady = condition("Ready", { status: "False" });

describe("a good status", () => {
  const cases: [string, StatusBearing][] = [
    ["none yet", anObject(stacks, "s")],
    ["ready", stack(condition("Ready"))],
    ["on its way", stack(notReady, condition("Reconciling"))],
    ["stuck", stack(notReady, condition("Stalled"))],
    ["an update that runs", anObject(updates, "u", having({ status: { conditions: [condition("Progressing")] } }))],
  ];
  for (const [name, object] of cases) test(name, () => expect(statusFaults(object)).toEqual([]));
});

describe("a bad status", () => {
  const running = [condition("Progressing"), condition("Complete")];
  const cases: [string, StatusBearing, string][] = [
    ["a lower-case reason", stack(condition("Ready", { reason: "because" })), 'the reason "because"'],
    ["no reason", stack(condition("Ready", { reason: "" })), 'the reason ""'],
    ["no message", stack(condition("Ready", { message: "" })), "no message"],
    ["an unknown status", stack(condition("Ready", { status: "Maybe" })), 'the status "Maybe"'],
    ["no time", stack(condition("Ready", { lastTransitionTime: "" })), "no lastTransitionTime"],
    ["a type twice", stack(condition("Ready"), condition("Ready")), "Ready is there twice"],
    ["a generation to come", stack(condition("Ready", { observedGeneration: 3 })), "generation 3 of 2"],
    ["ready and reconciling", stack(condition("Ready"), condition("Reconciling")), "while Ready is True"],
    ["not ready for no reason", stack(notReady), "neither Reconciling nor Stalled"],
    ["both reasons", stack(notReady, condition("Reconciling"), condition("Stalled")), "both Reconciling and Stalled"],
    ["a false reason", stack(notReady, condition("Stalled", { status: "False" })), "Stalled is there and not True"],
    ["no Ready", stack(condition("Stalled")), "Ready is not there"],
    ["running and over", anObject(updates, "u", having({ status: { conditions: running } })), "Progressing and over"],
  ];
  for (const [name, object, fault] of cases) {
    test(name, () => {
      expect(statusFaults(object).join()).toContain(fault);
      expect(() => checkStatus(object)).toThrow(fault);
    });
  }
});

describe("from one status to the next", () => {
  const later = { lastTransitionTime: "2030-01-01T00:00:05Z" };
  test("the time moves when the status changes, and only then", () => {
    const before = stack(notReady, condition("Reconciling"));
    expect(statusFaults(stack(condition("Ready", later)), before)).toEqual([]);
    expect(statusFaults(stack({ ...notReady, ...later }, condition("Reconciling")), before)).toEqual([
      "Ready kept its status, not its lastTransitionTime",
    ]);
    expect(statusFaults(stack(condition("Ready", { lastTransitionTime: "2029-01-01T00:00:00Z" })), before)).toEqual([
      "Ready changed its status in the past",
    ]);
  });

  test("the observed generation never goes back", () => {
    const before = anObject(stacks, "s", atGeneration(2), having({ status: { observedGeneration: 2 } }));
    const after = anObject(stacks, "s", atGeneration(2), having({ status: { observedGeneration: 1 } }));
    expect(statusFaults(after, before)).toEqual(["the observed generation went back from 2 to 1"]);
  });
});
