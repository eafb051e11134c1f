/** A clock that stands still until a test moves it. */
import type { Clock } from "./clock.ts";

export interface ManualClock extends Clock {
  /** Moves time forward and runs due timers in order; waiting code runs before and after each. */
  advance(ms: number): Promise<void>;
  /** Sets the wall clock forward or back, as an administrator or NTP does: no time passes, and no timer moves. */
  stepWallClock(ms: number): void;
  /** The number of timers that are set. */
  readonly pending: number;
}

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

export function manualClock(start = Date.UTC(2030, 0, 1)): ManualClock {
  const timers = new Set<Timer>();
  // Far from any wall clock time, so that a test fails if code mixes the two clocks.
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
 * When a macrotask runs, every promise that does not wait for time or I/O has settled. Several macrotasks, because code
 * that yields to the event loop, such as the work queue, continues in the next one.
 */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise<void>((resolve) => void setImmediate(resolve));
}
