/** How long to wait after the nth failure in a row: exponential, capped, with jitter so that a crowd does not march in step. */

export interface BackoffPolicy {
  readonly baseMs: number;
  readonly factor: number;
  readonly capMs: number;
  /** The part of the delay, 0 to 1, that chance may take off. It only takes, so that the cap holds. */
  readonly jitter: number;
}

export const defaultBackoff: BackoffPolicy = { baseMs: 200, factor: 2, capMs: 5 * 60_000, jitter: 0.2 };

/** `failures` counts from 1. `random` gives 0 ≤ x < 1. */
export function backoffDelay(policy: BackoffPolicy, failures: number, random: () => number = Math.random): number {
  const full = Math.min(policy.capMs, policy.baseMs * policy.factor ** (failures - 1));
  return full * (1 - policy.jitter * random());
}
