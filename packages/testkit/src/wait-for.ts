/** Waits for a condition in a test, with a timeout that names it. */

interface WaitOptions {
  readonly timeoutMs?: number;
  /** The condition, for the message of a timeout. */
  readonly what?: string;
  /** The shortest pause between two checks. */
  readonly pollMs?: number;
}

/** A check that starts a process, such as `kubectl exec`, must not take the CPU from what it waits for. */
const longestPauseMs = 2000;
const pausePerCheck = 9;

/**
 * Returns the first value of `condition` that is not undefined or false. An error counts as "not yet" and becomes the
 * cause of the timeout, so `condition` may contain an `expect`.
 */
export async function waitFor<T>(
  condition: () => T | undefined | false | Promise<T | undefined | false>,
  options: WaitOptions = {},
): Promise<T> {
  const { timeoutMs = 10_000, what = condition.toString(), pollMs = 20 } = options;
  const deadline = performance.now() + timeoutMs;
  let cause: unknown;
  do {
    const checkedAt = performance.now();
    try {
      const value = await condition();
      if (value !== undefined && value !== false) return value;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    const checkMs = performance.now() - checkedAt;
    await Bun.sleep(Math.max(pollMs, Math.min(longestPauseMs, checkMs * pausePerCheck)));
  } while (performance.now() < deadline);
  throw new Error(`timed out after ${timeoutMs} ms waiting for: ${what}`, { cause });
}
