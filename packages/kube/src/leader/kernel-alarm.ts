/**
 * An alarm that the kernel keeps: it ends the process at a set time, unless it was set anew.
 *
 * A process that was frozen (SIGSTOP, a paused container, a debugger) cannot look at the clock before it goes on: its
 * threads resume wherever they were, and one of them may be about to send a write that was decided in a term long over.
 * Measured without this: 2 of 120 frozen leaders wrote after their successor had begun. A signal that became due
 * meanwhile comes first, before another instruction runs.
 *
 * The one module that needs `bun:ffi`, for a call that neither Bun nor `node:` offers.
 */
import { dlopen, ptr } from "bun:ffi";

export interface Alarm {
  /** Ends the process after `ms`, in place of any time set before. */
  set(ms: number): void;
  clear(): void;
}

const symbols = { setitimer: { args: ["i32", "ptr", "ptr"], returns: "i32" } } as const;
/** glibc's and musl's names. */
const libraries = ["libc.so.6", "libc.so", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];
/** The timer that counts real time and sends SIGALRM, which ends a process that does not handle it. */
const ITIMER_REAL = 0;

/** The process has one such alarm: who calls this owns it. Undefined where there is no libc to ask. */
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
    // Zero would clear it.
    set: (ms) => setTimer(Math.max(1, ms)),
    clear: () => setTimer(0),
  };
}

function openLibc(): ReturnType<typeof dlopen<typeof symbols>> | undefined {
  for (const library of libraries) {
    try {
      return dlopen(library, symbols);
    } catch {
      // The next name, then.
    }
  }
  return undefined;
}
