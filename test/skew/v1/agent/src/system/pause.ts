/** A wait that ends early when there is nothing left to wait for. */
import { setTimeout as sleep } from "node:timers/promises";

const never = new AbortController().signal;

export async function pause(ms: number, over: AbortSignal = never): Promise<void> {
  if (over.aborted) return;
  // An abort rejects; here it is as good as the time having passed.
  await sleep(ms, undefined, { signal: over }).catch(() => undefined);
}
