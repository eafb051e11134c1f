import { expect, test } from "bun:test";

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
