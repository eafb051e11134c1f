import { describe, expect, test } from "bun:test";

import { memoryFaults } from "./memory.ts";

const minutes = Array.from({ length: 30 }, (_, minute) => minute);

describe("the memory of a soak test", () => {
  const steady: Record<string, readonly number[]> = {
    "is constant": minutes.map(() => 66),
    "goes up and down with garbage collection": minutes.map((minute) => 60 + 20 * (minute % 4)),
    shrinks: minutes.map((minute) => 90 - minute),
    "has one peak at the end": minutes.map((minute) => (minute === 29 ? 200 : 66)),
  };
  for (const [name, samples] of Object.entries(steady)) {
    test(`is accepted if it ${name}`, () => expect(memoryFaults(samples)).toEqual([]));
  }

  const growing: Record<string, readonly number[]> = {
    "grows by a megabyte a minute": minutes.map((minute) => 66 + minute),
    "grows between garbage collections": minutes.map((minute) => 60 + 20 * (minute % 4) + 2 * minute),
    "doubles in the middle": minutes.map((minute) => (minute < 15 ? 66 : 132)),
  };
  for (const [name, samples] of Object.entries(growing)) {
    test(`is rejected if it ${name}`, () => expect(memoryFaults(samples).join()).toMatch(/^resident memory grew from/));
  }

  test("is rejected if it was measured too rarely", () => expect(memoryFaults([66, 66])).toHaveLength(1));
});
