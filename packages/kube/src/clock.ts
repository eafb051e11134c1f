/**
 * Time as a dependency, so that backoff, leases and deadlines can be tested without waiting.
 *
 * There are two clocks. The wall clock can be set forward or back at any moment: it is for what people and other machines
 * read (timestamps, expiry dates). The monotonic clock only counts up: it is for every duration, schedule and deadline that
 * this process keeps in memory. A due time that comes from a timestamp is converted to a delay before it is scheduled.
 */
export interface Clock {
  /** Wall clock: milliseconds since the epoch. */
  now(): number;
  /** Monotonic clock: milliseconds since an arbitrary start. Only differences of two readings mean anything. */
  monotonic(): number;
  /** Runs `callback` once after `ms`; the returned function cancels it. */
  after(ms: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, callback) {
    let timer: ReturnType<typeof setTimeout>;
    const arm = (leftMs: number): void => {
      const next = leftMs > longestTimerMs ? () => arm(leftMs - longestTimerMs) : callback;
      // The time may have passed already: the runtime warns about a negative timeout.
      timer = setTimeout(next, Math.min(longestTimerMs, Math.max(0, leftMs)));
    };
    arm(ms);
    return () => clearTimeout(timer);
  },
};

/** Almost 25 days. The runtime treats a longer timeout as one millisecond: "every 30 days" would become a busy loop. */
const longestTimerMs = 2 ** 31 - 1;

/** Resolves after `ms` or as soon as `signal` aborts; the caller checks the signal. */
export async function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const cancel = clock.after(ms, done);
    signal?.addEventListener("abort", done, { once: true });
  });
}
