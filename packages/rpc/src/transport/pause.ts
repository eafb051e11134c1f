/** Waits for `ms`, or until the signal aborts. */
import { setTimeout as sleep } from "node:timers/promises";

const never = new AbortController().signal;

export async function pause(ms: number, signal: AbortSignal = never): Promise<void> {
  if (signal.aborted) return;
  // An abort rejects; here it only ends the wait.
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
