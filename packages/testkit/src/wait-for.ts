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
/** What has taken long may take longer, by a tenth; but a state that lasts for a moment must be seen. */
const pausePerWaited = 0.1;
const longestPausePerWaitedMs = 250;

/**
 * Returns the first value of `condition` that is not undefined or false. An error counts as "not yet" and becomes the
 * cause of the timeout, so `condition` may contain an `expect`.
 */
export async function waitFor<T>(
  condition: () => T | undefined | false | Promise<T | undefined | false>,
  options: WaitOptions = {},
): Promise<T> {
  const { timeoutMs = 60_000, what = condition.toString(), pollMs = 20 } = options;
  const started = performance.now();
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
    const now = performance.now();
    await Bun.sleep(Math.max(pollMs, pauseMs({ checkMs: now - checkedAt, waitedMs: now - started })));
  } while (performance.now() < started + timeoutMs);
  throw new Error(`timed out after ${timeoutMs} ms waiting for: ${what}`, { cause });
}

interface Elapsed {
  /** Of the last check. */
  readonly checkMs: number;
  /** Since the first check. */
  readonly waitedMs: number;
}

const pauseMs = ({ checkMs, waitedMs }: Elapsed): number =>
  Math.max(
    Math.min(longestPauseMs, checkMs * pausePerCheck),
    Math.min(longestPausePerWaitedMs, waitedMs * pausePerWaited),
  );
