/**
 * What does not respond: a server, for the credentials of one namespace, or a repository. After two failed rounds in a row it
 * rests, and longer after each further one. If a server names a time (`Retry-After`), it is left alone until then.
 */
import { backoffDelay, type BackoffPolicy, type Clock } from "@pko/kube";

import type { GitRefs } from "./git-remote.ts";

type GitFailure = Extract<GitRefs, { kind: "failed" }>;

/** Only "unreachable" means that the server does not respond. */
export interface FailedPoll {
  readonly kind: "failed";
  readonly problem: string;
  readonly retryAfterMs?: number;
}

export interface Endpoint<Failure extends FailedPoll = GitFailure> {
  /** Rounds without a success: polls that ran at the same time count once. */
  readonly failures: number;
  readonly restsUntil: number;
  readonly failure: Failure;
  readonly failedAt: number;
}

const backoff: BackoffPolicy = { baseMs: 30_000, factor: 2, capMs: 5 * 60_000, jitter: 0.2 };
const defaultMaxRetryAfterMs = 15 * 60_000;
/** Longer than any rest. */
const keptMs = 2 * 60 * 60_000;

export class Endpoints<Failure extends FailedPoll = GitFailure> {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #maxRetryAfterMs: number;
  readonly #failing = new Map<string, Endpoint<Failure>>();

  constructor(clock: Clock, random: () => number, maxRetryAfterMs = defaultMaxRetryAfterMs) {
    this.#clock = clock;
    this.#random = random;
    this.#maxRetryAfterMs = maxRetryAfterMs;
  }

  /** Undefined if the last poll did not fail, or if nothing was polled. */
  failing(id: string): Endpoint<Failure> | undefined {
    return this.#failing.get(id);
  }

  resting(id: string): Endpoint<Failure> | undefined {
    const endpoint = this.#failing.get(id);
    return endpoint && endpoint.restsUntil > this.#clock.monotonic() ? endpoint : undefined;
  }

  /** Any response shows that the server works, even one that rejects the credentials. */
  record(id: string, result: Failure | { readonly kind: "listed" }, startedAt: number): void {
    if (result.kind === "listed" || result.problem !== "unreachable") {
      this.#failing.delete(id);
      return;
    }
    const now = this.#clock.monotonic();
    const known = this.#failing.get(id);
    const isSameRound = known !== undefined && startedAt < known.failedAt;
    const failures = (known?.failures ?? 0) + (isSameRound ? 0 : 1);
    const namedMs = Math.min(result.retryAfterMs ?? 0, this.#maxRetryAfterMs);
    const restsUntil = isSameRound
      ? Math.max(known.restsUntil, now + namedMs)
      : now + Math.max(namedMs, restAfter(failures, this.#random));
    this.#forgetOld(now);
    // Last in the order, for `#forgetOld`.
    this.#failing.delete(id);
    this.#failing.set(id, { failures, restsUntil, failure: result, failedAt: isSameRound ? known.failedAt : now });
  }

  /** Those that no Stack follows since. */
  #forgetOld(now: number): void {
    for (const [id, { failedAt }] of this.#failing) {
      if (now - failedAt <= keptMs) return;
      this.#failing.delete(id);
    }
  }

  clear(): void {
    this.#failing.clear();
  }
}

function restAfter(failures: number, random: () => number): number {
  return failures < 2 ? 0 : backoffDelay(backoff, failures - 1, random);
}
