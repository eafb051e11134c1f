/**
 * A kernel timer that ends the process at a set time, unless it is reset before.
 *
 * A process that was frozen (SIGSTOP, a paused container, a debugger) cannot check the clock before it resumes: its
 * threads continue where they were, and one of them may be about to send a write that was decided in an earlier term.
 * Measured without the alarm: 2 of 120 frozen leaders wrote after their successor had started. A pending signal is
 * delivered before another instruction runs.
 *
 * The only module that needs `bun:ffi`, for a call that neither Bun nor `node:` offers.
 */
import { dlopen, ptr } from "bun:ffi";

export interface Alarm {
  /** Ends the process after `ms`, replacing any earlier time. */
  set(ms: number): void;
  clear(): void;
}

const symbols = { setitimer: { args: ["i32", "ptr", "ptr"], returns: "i32" } } as const;
/** The names of glibc and musl. */
const libraries = ["libc.so.6", "libc.so", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];
/** Counts real time and sends SIGALRM, which ends a process that does not handle it. */
const ITIMER_REAL = 0;

/** A process has only one such alarm; the caller owns it. Undefined if no libc is found. */
export function kernelAlarm(): Alarm | undefined {
  const libc = openLibc();
  if (!libc) return undefined;
  /** struct itimerval: seconds and microseconds of the interval, then of the value. */
  const timer = new BigInt64Array(4);
  const setTimer = (ms: number): void => {
    timer[2] = BigInt(Math.floor(ms / 1000));
    timer[3] = BigInt(Math.floor((ms % 1000) * 1000));
    if (libc.symbols.setitimer(ITIMER_REAL, ptr(timer), null) !== 0) throw new Error("setitimer failed");
  };
  return {
    // Zero would clear the timer.
    set: (ms) => setTimer(Math.max(1, ms)),
    clear: () => setTimer(0),
  };
}

function openLibc(): ReturnType<typeof dlopen<typeof symbols>> | undefined {
  for (const library of libraries) {
    try {
      return dlopen(library, symbols);
    } catch {
      // Try the next name.
    }
  }
  return undefined;
}
