/** An allowance that refills with time. */
import type { Clock } from "../clock.ts";

export interface TokenBucket {
  /** Takes a token; false if there is none. */
  take(): boolean;
  /** Whether there is no token. */
  isEmpty(): boolean;
  /** Whether it is as good as new. */
  isFull(): boolean;
}

interface TokenBucketOptions {
  readonly burst: number;
  /** Time until one token is added. */
  readonly refillMs: number;
  readonly clock: Clock;
}

export function tokenBucket({ burst, refillMs, clock }: TokenBucketOptions): TokenBucket {
  let tokens = burst;
  let at = clock.monotonic();
  const refill = (): void => {
    const now = clock.monotonic();
    tokens = Math.min(burst, tokens + Math.max(0, now - at) / refillMs);
    at = now;
  };
  return {
    take() {
      refill();
      if (tokens < 1) return false;
      tokens--;
      return true;
    },
    isEmpty() {
      refill();
      return tokens < 1;
    },
    isFull() {
      refill();
      return tokens === burst;
    },
  };
}
