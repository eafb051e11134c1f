import { describe, expect, test } from "bun:test";
import { manualClock } from "@pko/kube";

import { tuneRuntime } from "./runtime.ts";

const mb = 1_000_000;

function tuned() {
  const clock = manualClock();
  const state = { residentMb: 50, isReady: false, afterCollectionMb: 50 };
  const calls: string[] = [];
  const runtime = {
    residentBytes: () => state.residentMb * mb,
    collectGarbage() {
      calls.push(`collect at ${state.residentMb} MB`);
      state.residentMb = state.afterCollectionMb;
    },
    setCompileReluctance: (times: number) => void calls.push(`reluctance ${times}`),
  };
  tuneRuntime({ isReady: () => state.isReady, runtime, clock });
  return { clock, state, calls };
}

describe("garbage", () => {
  test("is collected when memory has grown, and not again until it has grown as much", async () => {
    const { clock, state, calls } = tuned();
    state.isReady = true;
    state.residentMb = 80;
    await clock.advance(1000);
    expect(calls).toEqual([]);
    state.residentMb = 90;
    state.afterCollectionMb = 85;
    await clock.advance(10_000);
    expect(calls).toEqual(["collect at 90 MB"]);
    state.residentMb = 118;
    await clock.advance(10_000);
    expect(calls).toEqual(["collect at 90 MB", "collect at 118 MB"]);
  });

  test("is compared with the least memory since the last collection", async () => {
    const { clock, state, calls } = tuned();
    state.isReady = true;
    state.residentMb = 30;
    await clock.advance(1000);
    state.residentMb = 70;
    await clock.advance(1000);
    expect(calls).toEqual(["collect at 70 MB"]);
  });
});

describe("code", () => {
  test("is not compiled during a start with few objects, however long it takes", async () => {
    const { clock, state, calls } = tuned();
    state.residentMb = 70;
    await clock.advance(120_000);
    state.isReady = true;
    state.residentMb = 100;
    await clock.advance(120_000);
    expect(calls).toEqual(["collect at 100 MB"]);
  });

  test("is compiled during a start with many objects, until they are reconciled", async () => {
    const { clock, state, calls } = tuned();
    state.residentMb = 90;
    state.afterCollectionMb = 80;
    await clock.advance(20_000);
    expect(calls).toEqual(["collect at 90 MB", "reluctance 1"]);
    state.isReady = true;
    await clock.advance(25_000);
    expect(calls).toHaveLength(2);
    await clock.advance(10_000);
    expect(calls.slice(2)).toEqual(["reluctance 10000"]);
  });
});
