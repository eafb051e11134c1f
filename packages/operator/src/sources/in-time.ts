import type { Clock } from "@pko/kube";

export interface Deadline<T> {
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Ends it as well. */
  readonly signal: AbortSignal;
  /** The result of what does not end in time. */
  readonly late: T;
  /** The result of what fails unexpectedly. */
  readonly failed: (error: unknown) => T;
}

/** Ends in time, whatever `run` and the servers that it calls do. */
export async function inTime<T>(deadline: Deadline<T>, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { clock, timeoutMs, signal, late, failed } = deadline;
  const ending = new AbortController();
  const { promise: ended, resolve } = Promise.withResolvers<T>();
  const end = (): void => {
    resolve(late);
    ending.abort();
  };
  const cancel = clock.after(timeoutMs, end);
  signal.addEventListener("abort", end, { once: true });
  try {
    return await Promise.race([ended, run(ending.signal)]);
  } catch (error) {
    return failed(error);
  } finally {
    cancel();
    signal.removeEventListener("abort", end);
  }
}
