import { expect, spyOn, test } from "bun:test";

import { systemClock } from "./clock.ts";

test("what is due already happens at once, and nobody is warned of it", async () => {
  const warnings: string[] = [];
  const note = ({ name }: Error): void => void warnings.push(name);
  process.on("warning", note);
  await new Promise<void>((resolve) => {
    systemClock.after(-424, resolve);
  });
  // Warnings are told at the next turn.
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", note);
  expect(warnings).toEqual([]);
});

test("what is due in more than 25 days is not taken for due at once, and happens when all its time is over", () => {
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

test("what is due in 30 days has not happened soon after, and can be cancelled", async () => {
  let happened = 0;
  const cancel = systemClock.after(30 * 86_400_000, () => void happened++);
  await Bun.sleep(50);
  cancel();
  expect(happened).toBe(0);
});
