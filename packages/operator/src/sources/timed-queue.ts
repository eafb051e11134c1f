/**
 * A queue that learns from its polls which hosts are quick. Polls of other hosts are suspects, and a poll that is not suspect ends
 * after five seconds, so that no server holds the slots that are not for suspects any longer.
 */
import type { Clock } from "@pko/kube";

import { inTime, type Deadline } from "./in-time.ts";
import { PollQueue, type Poll, type PollLimits, type StartedPoll, type Suspicion } from "./poll-queue.ts";
import { quickMs, QuickHosts } from "./quick-hosts.ts";

export interface TimedLimits extends PollLimits {
  /** For a suspect. */
  readonly timeoutMs: number;
}

/** A poll that was not suspect has not ended quickly. It has no result, and is repeated as a suspect. */
export const slow = { kind: "slow" } as const;
export type Slow = typeof slow;

export const isSlowResult = (result: unknown): result is Slow => result === slow;

interface EndedPoll {
  readonly startedAt: number;
  /** Of the Stacks that follow what was polled. */
  readonly namespaces: Iterable<string>;
  /** Of the server: other results may be those of the operator itself. */
  readonly isResponse: boolean;
}

export class TimedQueue<P extends Poll> extends PollQueue<P> {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #quickHosts: QuickHosts;

  constructor(limits: TimedLimits, clock: Clock) {
    super(limits);
    this.#clock = clock;
    this.#timeoutMs = limits.timeoutMs;
    this.#quickHosts = new QuickHosts(clock);
  }

  /** A new host must show first that it is quick. `isSlow`: whether the last poll of the same was slow. */
  suspicion(host: string, namespace: string, isSlow = false): Suspicion | undefined {
    return isSlow || !this.#quickHosts.has(host, namespace) ? "unproven" : undefined;
  }

  async run<T>(
    { isSuspect }: StartedPoll<P>,
    { signal, late, failed }: Pick<Deadline<T>, "signal" | "late" | "failed">,
    run: (signal: AbortSignal) => Promise<T>,
  ): Promise<T | Slow> {
    const timeoutMs = isSuspect ? this.#timeoutMs : quickMs;
    const deadline = { clock: this.#clock, timeoutMs, signal, late: isSuspect ? late : slow, failed };
    return await inTime<T | Slow>(deadline, run);
  }

  /** Returns whether the poll was slow. If it was not, others of its host that wait may not be suspect any longer. */
  recordEnd(host: string, { startedAt, namespaces, isResponse }: EndedPoll): boolean {
    if (this.#clock.monotonic() - startedAt > quickMs) return true;
    if (!isResponse) return false;
    const all = [...namespaces];
    const proven = all.filter((namespace) => !this.#quickHosts.has(host, namespace));
    this.#quickHosts.add(host, all);
    for (const namespace of proven) this.reconsider(namespace, host);
    return false;
  }

  /** A poll that started then has ended as `slow`. */
  recordSlow(host: string, namespaces: Iterable<string>, startedAt: number): void {
    this.#quickHosts.recordSlow(host, namespaces, startedAt);
  }

  forgetHosts(): void {
    this.#quickHosts.clear();
  }
}
