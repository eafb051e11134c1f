/** How many requests are handled at all, so that nobody can occupy the operator. */
import { tokenBucket, type Clock, type Key, type TokenBucket } from "@pko/kube";

export const maxBodyBytes = 1024 * 1024;
export const bodyTimeoutMs = 10_000;

/** For one Receiver. A busy organization pushes less often. */
const perReceiver = { burst: 100, refillMs: 100, inFlight: 8 };
/** For all together. Bodies of requests in flight are in memory. */
const overall = { burst: 500, refillMs: 10, inFlight: 32 };

export type Admission =
  { readonly kind: "admitted"; readonly end: () => void } | { readonly kind: "rateLimited" | "busy" };

export class RequestLimits {
  readonly #clock: Clock;
  readonly #overall: TokenBucket;
  readonly #buckets = new Map<Key, TokenBucket>();
  readonly #inFlight = new Map<Key, number>();
  #total = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#overall = tokenBucket({ ...overall, clock });
  }

  admit(receiver: Key): Admission {
    const running = this.#inFlight.get(receiver) ?? 0;
    if (running >= perReceiver.inFlight || this.#total >= overall.inFlight) return { kind: "busy" };
    // The Receiver's own limit first: what exceeds it must not use up the allowance of others.
    if (!this.#bucketOf(receiver).take() || !this.#overall.take()) return { kind: "rateLimited" };
    this.#total++;
    this.#inFlight.set(receiver, running + 1);
    return { kind: "admitted", end: () => this.#end(receiver) };
  }

  forget(receiver: Key): void {
    this.#buckets.delete(receiver);
  }

  #bucketOf(receiver: Key): TokenBucket {
    const bucket = this.#buckets.get(receiver) ?? tokenBucket({ ...perReceiver, clock: this.#clock });
    this.#buckets.set(receiver, bucket);
    return bucket;
  }

  #end(receiver: Key): void {
    this.#total--;
    const left = (this.#inFlight.get(receiver) ?? 1) - 1;
    if (left > 0) this.#inFlight.set(receiver, left);
    else this.#inFlight.delete(receiver);
  }
}
