/** Polls for conditions that no watch reports, with a timeout. */
import { TimedOut, type WaitLimit } from "./watch.ts";

const pollMs = 50;

export async function waitUntil<T>(
  poll: () => Promise<T | undefined | false>,
  { what, timeoutMs, signal }: WaitLimit & { readonly signal: AbortSignal },
): Promise<T> {
  const end = performance.now() + timeoutMs;
  while (performance.now() < end) {
    signal.throwIfAborted();
    const value = await poll();
    if (value !== undefined && value !== false) return value;
    await Bun.sleep(pollMs);
  }
  throw TimedOut.after({ what, timeoutMs });
}

/** Processes all items, `workers` at a time. */
export async function inParallel<T>(
  items: readonly T[],
  workers: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) await work(item);
  };
  await Promise.all(Array.from({ length: workers }, worker));
}
