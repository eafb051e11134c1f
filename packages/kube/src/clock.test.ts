import { expect, spyOn, test } from "bun:test";

import { systemClock } from "./clock.ts";

test("a negative delay runs immediately and without a warning", async () => {
  const warnings: string[] = [];
  const collect = ({ name }: Error): void => void warnings.push(name);
  process.on("warning", collect);
  await new Promise<void>((resolve) => {
    systemClock.after(-424, resolve);
  });
  // Warnings are emitted in the next turn of the event loop.
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", collect);
  expect(warnings).toEqual([]);
});

test("a delay of more than 25 days runs after all of its time, not immediately", () => {
  const day = 86_400_000;
  const waits: number[] = [];
  const steps: (() => void)[] = [];
  const timer = spyOn(globalThis, "setTimeout").mockImplementation(((step: () => void, ms: number) => {
    waits.push(ms);
    steps.push(step);
    return 0;
  }) as never);
  let happened = 0;
  try {
    systemClock.after(60 * day, () => void happened++);
    for (let step = steps.shift(); step; step = steps.shift()) {
      expect(happened).toBe(0);
      step();
    }
  } finally {
    timer.mockRestore();
  }
  expect(happened).toBe(1);
  expect(waits.reduce((sum, ms) => sum + ms, 0)).toBe(60 * day);
  expect(Math.max(...waits)).toBeLessThan(2 ** 31);
});

test("a cancelled delay does not run", async () => {
  let happened = 0;
  const cancel = systemClock.after(1, () => void happened++);
  cancel();
  // A later one has run.
  await new Promise<void>((resolve) => void systemClock.after(2, resolve));
  expect(happened).toBe(0);
});
