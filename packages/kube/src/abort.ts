/** Running work under several abort signals. */

export type MaybeSignal = AbortSignal | undefined;

/**
 * Runs `work` under a signal that aborts with the first of `parents`. Unlike `AbortSignal.any`, it leaves no listener on
 * parents that live as long as the process.
 */
export async function underSignals<T>(
  parents: readonly MaybeSignal[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const unlink = parents.map((parent) => onAbort(parent, (reason) => controller.abort(reason)));
  try {
    return await work(controller.signal);
  } finally {
    for (const each of unlink) each();
  }
}

/** Calls `callback` when the signal aborts, immediately if it already has; the returned function removes the listener. */
export function onAbort(signal: MaybeSignal, callback: (reason: unknown) => void): () => void {
  if (!signal) return () => undefined;
  const listener = (): void => callback(signal.reason);
  if (signal.aborted) listener();
  else signal.addEventListener("abort", listener, { once: true });
  return () => signal.removeEventListener("abort", listener);
}

/** Resolves when the signal aborts. */
export async function whenAborted(signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => onAbort(signal, () => resolve()));
}
