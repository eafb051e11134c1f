import { describe, expect, test } from "bun:test";

import { judge, slope, type Sample } from "./gates.ts";

const times = Array.from({ length: 90 }, (_, index) => index);
const steady = {
  resident: 80,
  heap: 20,
  files: 30,
  sockets: 20,
  threads: 12,
  queued: 0,
  objects: 50,
  agentResident: 60,
  agentFiles: 20,
};

const samples = (series: string, value: (at: number) => number): Sample[] =>
  times.map((at) => ({ seconds: at * 20, values: { ...steady, [series]: value(at) } }));

const failed = (measured: readonly Sample[]): string[] =>
  judge(measured)
    .filter(({ isPassed }) => !isPassed)
    .map(({ gate }) => gate.series);

describe("a soak test passes if", () => {
  const passing: Record<string, Sample[]> = {
    "nothing changes": samples("resident", () => 80),
    "memory goes up and down with garbage collection": samples("resident", (at) => 70 + 10 * (at % 7)),
    "memory shrinks": samples("resident", (at) => 120 - at / 3),
    "memory has peaks": samples("resident", (at) => (at % 20 === 19 ? 300 : 80)),
    "the heap doubles between collections": samples("heap", (at) => 20 + 4 * (at % 5)),
    "files are opened for a while": samples("files", (at) => (at > 30 && at < 45 ? 200 : 30)),
    "keys wait in a queue": samples("queued", (at) => at % 4),
  };
  for (const [name, measured] of Object.entries(passing)) test(name, () => expect(failed(measured)).toEqual([]));
});

describe("a soak test fails if", () => {
  const failing: Record<string, [string, (at: number) => number]> = {
    "resident memory grows by 20 MB in half an hour": ["resident", (at) => 80 + at * 0.23],
    "memory grows below its peaks": ["resident", (at) => 70 + 10 * (at % 7) + at * 0.3],
    "memory grows in steps": ["resident", (at) => 80 + 20 * Math.floor(at / 18)],
    "the heap grows": ["heap", (at) => 20 + 4 * (at % 5) + at * 0.1],
    "a file stays open every three minutes": ["files", (at) => 30 + Math.floor(at / 9)],
    "sockets stay open": ["sockets", (at) => 20 + at],
    "the queue grows": ["queued", (at) => at / 10],
    "stores keep deleted objects": ["objects", (at) => 50 + at],
    "the agent grows": ["agentResident", (at) => 60 + at * 0.2],
  };
  for (const [name, [series, value]] of Object.entries(failing))
    test(name, () => expect(failed(samples(series, value))).toEqual([series]));

  test("nothing was measured", () => expect(failed([])).toHaveLength(judge([]).length));
  test("a series was not measured", () => {
    const { heap: _, ...others } = steady;
    const measured = times.map((seconds) => ({ seconds, values: others }));
    expect(failed(measured)).toEqual(["heap"]);
  });
});

test("outliers do not change a slope", () => {
  const points = times.map((seconds) => ({ seconds, value: seconds % 10 === 0 ? 1000 : 2 * seconds }));
  expect(slope(points)).toBeCloseTo(2, 1);
});
