/** Waiting for what no watch of ours tells: looked at again and again, never without an end. */
import { Missed, type Patience } from "./watch.ts";

const pollMs = 50;

export async function waitUntil<T>(
  look: () => Promise<T | undefined | false>,
  { what, timeoutMs, signal }: Patience & { readonly signal: AbortSignal },
): Promise<T> {
  const end = performance.now() + timeoutMs;
  while (performance.now() < end) {
    signal.throwIfAborted();
    const value = await look();
    if (value !== undefined && value !== false) return value;
    await Bun.sleep(pollMs);
  }
  throw Missed.after({ what, timeoutMs });
}

/** Through all of it, `workers` at a time. */
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
