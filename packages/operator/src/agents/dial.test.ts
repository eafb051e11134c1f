import { expect, test } from "bun:test";
import { manualClock } from "@pko/kube";

import { Attempts, Waker } from "./dial.ts";

test.each([3_600_000, -3_600_000])("wakes at its usual pace when the wall clock is set by %d ms", async (step) => {
  const clock = manualClock();
  const start = clock.monotonic();
  const wakes: number[] = [];
  const waker = new Waker(() => wakes.push(clock.monotonic() - start), 1000, clock);
  waker.soon();
  clock.stepWallClock(step);
  waker.soon();
  await clock.advance(5000);
  expect(wakes).toEqual([0, 1000]);
});

test("the time for which an agent is unreachable stays the same when the wall clock is set", async () => {
  const clock = manualClock(0);
  const attempts = new Attempts({
    clock,
    ca: { distrusted: () => undefined, operatorCredentials: () => ({ ca: "", cert: "", key: "" }) },
  });
  expect(attempts.sinceMs).toBe(0);
  await clock.advance(5000);
  expect(attempts.sinceMs).toBe(0);
  clock.stepWallClock(-3_600_000);
  expect(clock.now() - attempts.sinceMs).toBe(5000);
});
