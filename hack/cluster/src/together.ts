/**
 * Waits for work that was started with the signal of `abort`. After the first failure it waits until the rest has ended too,
 * so that no process outlives this one.
 */
export async function together(abort: AbortController, work: readonly Promise<unknown>[]): Promise<void> {
  try {
    await Promise.all(work);
  } catch (error) {
    abort.abort();
    await Promise.allSettled(work);
    throw error;
  }
}
