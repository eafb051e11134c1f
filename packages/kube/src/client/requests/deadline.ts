/** Deadlines: work ends when its time is over or its caller aborts, even if it ignores its signal. */
import { onAbort } from "../../abort.ts";
import type { Clock } from "../../clock.ts";

interface Limits {
  readonly clock: Clock;
  readonly ms: number;
  readonly signal?: AbortSignal | undefined;
}

/** The reason of an abort caused by a deadline. */
export class DeadlineError extends Error {
  constructor(ms: number) {
    super(`took longer than ${ms} ms`);
    this.name = "DeadlineError";
  }
}

/** A signal that aborts after a time or with its parent. Call `release` to remove the listener from a long-lived parent. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Cancels the time limit; the parent can still abort. */
  stopClock(): void;
  abort(reason: unknown): void;
  release(): void;
}

export function startDeadline(limits: Limits): Deadline {
  const controller = new AbortController();
  const stopClock = limits.clock.after(limits.ms, () => controller.abort(new DeadlineError(limits.ms)));
  const unlink = onAbort(limits.signal, (reason) => controller.abort(reason));
  return {
    signal: controller.signal,
    stopClock,
    abort: (reason) => controller.abort(reason),
    release() {
      stopClock();
      unlink();
    },
  };
}

export async function withDeadline<T>(limits: Limits, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const deadline = startDeadline(limits);
  try {
    return await orAborted(work(deadline.signal), deadline.signal);
  } finally {
    deadline.release();
  }
}

/** The result of the work, or the signal's reason as soon as it aborts, even if the work ignores the signal. */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const unlink = onAbort(signal, (reason) => aborted.reject(asError(reason)));
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    unlink();
  }
}

export function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
