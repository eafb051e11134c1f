import { expect, test } from "bun:test";
import type { EngineEvent } from "../pulumi/engine-events.ts";
import { EventGate } from "./event-gate.ts";

const none = { seconds: 1, errorLines: [], isMandatoryPolicy: false, warnsOfPending: false };
const resource = (sequence: number, isPreview: boolean): EngineEvent => ({
  ...none,
  sequence,
  isPreview,
  event: { kind: "resource", phase: "finished", op: "create", urn: "u", resourceType: "t" },
});
const diagnostic = (sequence: number): EngineEvent => ({
  ...none,
  sequence,
  event: { kind: "diagnostic", severity: "warning", message: "w" },
});
const passed = (gate: EventGate, ...events: readonly EngineEvent[]): number[] =>
  events.flatMap((event) => gate.pass(event).map(({ sequence }) => sequence));

test("a preview and a change report everything", () => {
  for (const kind of ["preview", "change"] as const) {
    const gate = new EventGate(kind);
    expect(passed(gate, diagnostic(0), resource(1, kind === "preview"))).toEqual([0, 1]);
    expect(gate.isOpen).toBe(true);
  }
});

test("a check reports nothing, and keeps its diagnostics for the case that it fails", () => {
  for (const kind of ["check", "planned"] as const) {
    const gate = new EventGate(kind);
    expect(passed(gate, diagnostic(0), resource(1, true), diagnostic(2))).toEqual([]);
    expect(gate.isOpen).toBe(false);
    expect(gate.held().map(({ sequence }) => sequence)).toEqual([0, 2]);
  }
});

test("the changes after a check are reported from the first event on", () => {
  const gate = new EventGate("planned");
  expect(passed(gate, diagnostic(0), resource(1, false), diagnostic(2))).toEqual([0, 1, 2]);
  expect(gate.isOpen).toBe(true);
  expect(gate.held()).toEqual([]);
});
