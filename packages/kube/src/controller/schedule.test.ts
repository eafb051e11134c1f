import { beforeEach, describe, expect, test } from "bun:test";

import { manualClock, type ManualClock } from "../manual-clock.ts";
import { testSeed } from "../../testing/seed.ts";
import { seededRandom } from "../../testing/seeded-random.ts";
import { Schedule } from "./schedule.ts";

let clock: ManualClock;
let due: string[];
let schedule: Schedule;

beforeEach(() => {
  clock = manualClock();
  due = [];
  schedule = new Schedule(clock, (key) => due.push(key));
});

const after = (ms: number): number => clock.monotonic() + ms;

describe("keys are due", () => {
  test("in the order of their times, however they were added", async () => {
    const random = seededRandom(testSeed("schedule"));
    const times = Array.from({ length: 500 }, (_, index) => ({ key: `k${index}`, ms: 1 + random.next() * 1000 }));
    for (const { key, ms } of times) schedule.add(key, after(ms));
    await clock.advance(2000);
    expect(due).toEqual(times.toSorted((a, b) => a.ms - b.ms).map(({ key }) => key));
    expect(schedule.size).toBe(0);
  });

  test("at the last time that was set", async () => {
    schedule.add("a", after(100));
    schedule.add("a", after(50));
    schedule.add("b", after(10));
    schedule.add("b", after(200));
    await clock.advance(60);
    expect(due).toEqual(["a"]);
    await clock.advance(200);
    expect(due).toEqual(["a", "b"]);
  });

  test("never when they were removed", async () => {
    schedule.add("a", after(100));
    schedule.remove("a");
    await clock.advance(200);
    expect(due).toEqual([]);
  });
});

test("there is one timer, and none after the schedule was cleared", () => {
  for (let index = 0; index < 100; index++) schedule.add(`k${index}`, after(1000 - index));
  expect(clock.pending).toBe(1);
  schedule.clear();
  expect(clock.pending).toBe(0);
  expect(schedule.size).toBe(0);
});

test("a key that is often set again is due once", async () => {
  for (let index = 0; index < 1000; index++) schedule.add("a", after(1000 + index));
  await clock.advance(5000);
  expect(due).toEqual(["a"]);
});
