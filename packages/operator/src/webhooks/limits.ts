/** How many requests are handled at all, so that nobody can occupy the operator. */
import { tokenBucket, type Clock, type TokenBucket } from "@pko/kube";

export const maxBodyBytes = 1024 * 1024;
export const bodyTimeoutMs = 10_000;

/** For one namespace, however many Receivers it has: one tenant must not block others. A busy organization pushes less often. */
const perNamespace = { burst: 100, refillMs: 50, inFlight: 8 };
/** For all together. Bodies of requests in flight are in memory. */
const overall = { burst: 500, refillMs: 10, inFlight: 32 };

export type Admission = ({ readonly kind: "admitted" } & Slot) | { readonly kind: "rateLimited" | "busy" };

interface Slot {
  /** Aborted if another request gets the slot. That happens only while the body is incomplete. */
  readonly signal: AbortSignal;
  readonly bodyIsRead: () => void;
  readonly end: () => void;
}

interface Running {
  readonly namespace: string;
  readonly abort: () => void;
  isReading: boolean;
}

export class RequestLimits {
  readonly #clock: Clock;
  readonly #overall: TokenBucket;
  readonly #buckets = new Map<string, TokenBucket>();
  /** The oldest first. */
  readonly #running = new Set<Running>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#overall = tokenBucket({ ...overall, clock });
  }

  admit(namespace: string): Admission {
    // What exceeds one limit must not use up the allowance of the other.
    if (this.#overall.isEmpty() || !this.#bucketOf(namespace).take()) return { kind: "rateLimited" };
    this.#overall.take();
    const all = [...this.#running];
    const own = all.filter((each) => each.namespace === namespace);
    if (own.length >= perNamespace.inFlight) {
      if (!this.#endOldest(own)) return { kind: "busy" };
    } else if (all.length >= overall.inFlight && !this.#endOldest(all)) return { kind: "busy" };
    return this.#start(namespace);
  }

  #start(namespace: string): Admission {
    const controller = new AbortController();
    const running: Running = { namespace, abort: () => controller.abort(), isReading: true };
    this.#running.add(running);
    return {
      kind: "admitted",
      signal: controller.signal,
      bodyIsRead: () => (running.isReading = false),
      end: () => this.#running.delete(running),
    };
  }

  /** Slow senders must not hold all slots: whose body is incomplete after the longest time makes room. */
  #endOldest(candidates: readonly Running[]): boolean {
    const oldest = candidates.find(({ isReading }) => isReading);
    if (!oldest) return false;
    this.#running.delete(oldest);
    oldest.abort();
    return true;
  }

  #bucketOf(namespace: string): TokenBucket {
    const known = this.#buckets.get(namespace);
    if (known) return known;
    // A full bucket is like a new one.
    for (const [name, bucket] of this.#buckets) if (bucket.isFull()) this.#buckets.delete(name);
    const bucket = tokenBucket({ ...perNamespace, clock: this.#clock });
    this.#buckets.set(namespace, bucket);
    return bucket;
  }
}
