/** Work under several signals at once. */

export type MaybeSignal = AbortSignal | undefined;

/**
 * Runs `work` under a signal that aborts with the first of `parents`. Unlike `AbortSignal.any` it leaves nothing behind
 * on parents that live as long as the process.
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

/** Calls back when the signal aborts, at once if it has; the returned function ends that. */
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
