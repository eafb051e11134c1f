/** A clock that stands still until a test moves it. */
import type { Clock } from "./clock.ts";

export interface ManualClock extends Clock {
  /** Moves time forward and runs what falls due, in order; code that waits gets its turn before and after each. */
  advance(ms: number): Promise<void>;
  /** Sets the wall clock forward or back, as an administrator or NTP does: no time passes, and no timer moves. */
  stepWallClock(ms: number): void;
  /** How many timers wait. */
  readonly pending: number;
}

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

export function manualClock(start = Date.UTC(2030, 0, 1)): ManualClock {
  const timers = new Set<Timer>();
  // Unlike any wall clock: a reading of one that is compared with the other shows in a test.
  let now = 1_000_000;
  let wallOffset = start - now;
  return {
    now: () => now + wallOffset,
    monotonic: () => now,
    stepWallClock: (ms) => void (wallOffset += ms),
    after(ms, callback) {
      const timer = { at: now + Math.max(0, ms), callback };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    async advance(ms) {
      const until = now + ms;
      for (await settle(); ; await settle()) {
        const timer = nextDue(timers, until);
        if (!timer) break;
        timers.delete(timer);
        now = timer.at;
        timer.callback();
      }
      now = until;
    },
    get pending() {
      return timers.size;
    },
  };
}

function nextDue(timers: ReadonlySet<Timer>, until: number): Timer | undefined {
  let next: Timer | undefined;
  for (const timer of timers) if (timer.at <= until && (!next || timer.at < next.at)) next = timer;
  return next;
}

/**
 * Every promise that can go on without time or the outside world has gone on when a macrotask runs. Several, since code
 * that yields to the event loop (the work queue does) goes on in the next one.
 */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise<void>((resolve) => void setImmediate(resolve));
}
