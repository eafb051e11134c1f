/** The delay after the nth consecutive failure: exponential, capped, with jitter so that many keys do not retry at once. */

export interface BackoffPolicy {
  readonly baseMs: number;
  readonly factor: number;
  readonly capMs: number;
  /** The largest part of the delay, 0 to 1, by which it is shortened at random. It is never lengthened, so that the cap holds. */
  readonly jitter: number;
}

export const defaultBackoff: BackoffPolicy = { baseMs: 200, factor: 2, capMs: 5 * 60_000, jitter: 0.2 };

/** `failures` counts from 1. `random` returns 0 ≤ x < 1. */
export function backoffDelay(policy: BackoffPolicy, failures: number, random: () => number = Math.random): number {
  const full = Math.min(policy.capMs, policy.baseMs * policy.factor ** (failures - 1));
  return full * (1 - policy.jitter * random());
}
