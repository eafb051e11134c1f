/** Work that ends in time: when the clock or the caller says so, whatever it waits for. */
import type { Clock } from "./clock.ts";

export interface Limits {
  readonly clock: Clock;
  readonly ms: number;
  readonly signal?: AbortSignal | undefined;
}

/** The reason of the abort when time ran out. */
export class DeadlineError extends Error {
  constructor(ms: number) {
    super(`took longer than ${ms} ms`);
    this.name = "DeadlineError";
  }
}

/** A signal that aborts after a time or with its parent. `release` must be called: parents live long. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Ends the time limit alone; the parent still aborts. */
  stopClock(): void;
  abort(reason: unknown): void;
  release(): void;
}

export function startDeadline(limits: Limits): Deadline {
  const controller = new AbortController();
  const parent = limits.signal;
  const follow = (): void => controller.abort(parent?.reason);
  const stopClock = limits.clock.after(limits.ms, () => controller.abort(new DeadlineError(limits.ms)));
  if (parent?.aborted) follow();
  else parent?.addEventListener("abort", follow, { once: true });
  return {
    signal: controller.signal,
    stopClock,
    abort: (reason) => controller.abort(reason),
    release() {
      stopClock();
      parent?.removeEventListener("abort", follow);
    },
  };
}

export async function withDeadline<T>(limits: Limits, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const deadline = startDeadline(limits);
  try {
    return await Promise.race([work(deadline.signal), aborted(deadline.signal)]);
  } finally {
    deadline.release();
  }
}

/** Never resolves. Lets us go on though the work ignores its signal. */
async function aborted(signal: AbortSignal): Promise<never> {
  return await new Promise((_, reject) => {
    const fail = (): void => reject(asError(signal.reason));
    if (signal.aborted) fail();
    else signal.addEventListener("abort", fail, { once: true });
  });
}

export function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
