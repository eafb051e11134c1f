import { expect, test } from "bun:test";

import { sleep } from "./clock.ts";
import { manualClock } from "./manual-clock.ts";

test("timers run in order, each at its time", async () => {
  const clock = manualClock(0);
  const ran: [string, number][] = [];
  clock.after(20, () => ran.push(["late", clock.now()]));
  clock.after(10, () => ran.push(["early", clock.now()]));
  await clock.advance(15);
  expect(ran).toEqual([["early", 10]]);
  expect(clock.now()).toBe(15);
  await clock.advance(5);
  expect(ran).toEqual([
    ["early", 10],
    ["late", 20],
  ]);
});

test("a cancelled timer does not run", async () => {
  const clock = manualClock();
  let ran = false;
  clock.after(10, () => (ran = true))();
  await clock.advance(100);
  expect(ran).toBe(false);
  expect(clock.pending).toBe(0);
});

test("code that sleeps in a loop wakes once per interval", async () => {
  const clock = manualClock();
  let rounds = 0;
  const stop = new AbortController();
  const loop = (async () => {
    while (!stop.signal.aborted) {
      await sleep(clock, 10, stop.signal);
      rounds++;
    }
  })();
  await clock.advance(35);
  expect(rounds).toBe(3);
  stop.abort();
  await loop;
});

test("setting the wall clock changes neither the monotonic clock nor a timer", async () => {
  const clock = manualClock(0);
  const start = clock.monotonic();
  let ranAt: number | undefined;
  clock.after(100, () => (ranAt = clock.monotonic() - start));
  clock.stepWallClock(3_600_000);
  expect([clock.now(), clock.monotonic()]).toEqual([3_600_000, start]);
  await clock.advance(100);
  expect([ranAt, clock.now()]).toEqual([100, 3_600_100]);
});
