import { expect, test } from "bun:test";
import type { ResourceEvent } from "@pko/records";
import { StepTimes } from "./step-times.ts";

const step = (phase: ResourceEvent["phase"], op = "create"): ResourceEvent => ({
  kind: "resource",
  phase,
  op,
  urn: "urn:a",
  resourceType: "t",
});

interface Measured {
  /** The engine's times, in seconds. */
  readonly engine: readonly [number, number];
  /** When the agent read the events, in milliseconds. */
  readonly read: readonly [number, number];
  readonly durationMs: number;
}

const cases: Record<string, Measured> = {
  "is the time between two reads": { engine: [10, 12], read: [100, 1_900], durationMs: 1_800 },
  "is zero for events that are read at once": { engine: [10, 10], read: [100, 100], durationMs: 0 },
  "is not shorter than the engine's times allow, also after a restart": {
    engine: [10, 70],
    read: [100, 100],
    durationMs: 59_000,
  },
  "is not longer than the engine's times allow, even if the agent was busy": {
    engine: [10, 11],
    read: [100, 9_000],
    durationMs: 2_000,
  },
  "is never negative": { engine: [11, 10], read: [200, 100], durationMs: 0 },
};
for (const [name, { engine, read, durationMs }] of Object.entries(cases)) {
  test(`the duration of a step ${name}`, () => {
    const times = new StepTimes();
    expect(times.add({ event: step("started"), seconds: engine[0] }, read[0])).toEqual(step("started"));
    const ended = times.add({ event: step("finished"), seconds: engine[1] }, read[1]);
    expect(ended).toEqual({ ...step("finished"), durationMs });
  });
}

test("the steps of a replacement are measured separately, and a step without a start has no duration", () => {
  const times = new StepTimes();
  times.add({ event: step("started", "create-replacement"), seconds: 1 }, 0);
  expect(times.add({ event: step("finished", "replace"), seconds: 1 }, 500)).toEqual(step("finished", "replace"));
  expect(times.add({ event: step("failed", "create-replacement"), seconds: 1 }, 700)).toMatchObject({
    durationMs: 700,
  });
});
