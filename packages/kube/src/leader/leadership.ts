/**
 * Leadership from a controller's point of view: terms, and writes that happen only while leading is certain.
 *
 * Why a clock is enough: the holder measures time from *before* it sends a renewal, a candidate measures the lease duration
 * from *after* it has seen that renewal. So the holder's measurement is always ahead of every candidate's, however the
 * machines' clocks are set: only their rates matter. The holder stops writing at `renewDeadline`, a candidate may start at
 * `leaseDuration`. The margin between them (5 s by default) covers clocks that run at different rates, requests that are in
 * flight when the term ends, and pauses of the process (garbage collection, a stopped container) between the check and the
 * send. After a longer pause, the check fails. Either clock may be wrong: a wall clock can be set, a monotonic clock may
 * stop while the machine is suspended. So the holder believes the clock that shows more time, a candidate only the monotonic one.
 *
 * A check cannot prevent a write that has passed it and has not been sent when a longer pause starts. The kernel alarm
 * (kernel-alarm.ts) ends such a process before it resumes. Without the alarm, deterministic names and server-side apply limit
 * the damage, and a write that must never be stale has the observed resourceVersion as a precondition.
 */
import type { Clock } from "../clock.ts";
import { ApiError } from "../client/errors.ts";

/** A write was rejected or aborted because this replica may not be the leader. */
export class NotLeaderError extends Error {
  readonly operation: string;

  constructor(operation: string, options: { readonly wasAborted?: boolean; readonly cause?: unknown } = {}) {
    super(`${operation}: ${options.wasAborted ? "aborted, no longer leading" : "rejected, not leading"}`, {
      cause: options.cause,
    });
    this.name = "NotLeaderError";
    this.operation = operation;
  }
}

/** One period of leadership. */
export interface Term {
  /** Grows with each change of the leader, across all replicas. */
  readonly epoch: number;
  /** Aborts when the term ends, for any reason. */
  readonly signal: AbortSignal;
}

export interface Leadership {
  /** The current term; undefined while another replica leads or may lead. */
  readonly term: Term | undefined;
  /** True only if no other replica can be leading now. */
  isCertain(): boolean;
  /** Runs a write if leading is certain, under a signal that aborts when the term ends. Rejects with NotLeaderError. */
  guard<T>(operation: string, write: (signal: AbortSignal) => Promise<T>): Promise<T>;
}

/** Runs `lead` once for each term that it wins, until `stop` aborts and the last `lead` has returned. */
export interface Elector extends Leadership {
  /** `lead` returns soon after `stop` or the term's signal aborts; the next term does not start before that. */
  run(stop: AbortSignal, lead: (term: Term) => Promise<void>): Promise<void>;
}

export interface Stopwatch {
  /** A point in time to measure from. */
  mark(): TimeMark;
  /** An upper bound of the elapsed time, for a holder that must stop in time. */
  atMostMs(since: TimeMark): number;
  /** A lower bound of the elapsed time, for a candidate that must wait long enough. */
  atLeastMs(since: TimeMark): number;
}

export interface TimeMark {
  readonly wall: number;
  readonly monotonic: number;
}

export function stopwatch(clock: Clock): Stopwatch {
  return {
    mark: () => ({ wall: clock.now(), monotonic: clock.monotonic() }),
    atMostMs: (since) => Math.max(clock.now() - since.wall, clock.monotonic() - since.monotonic),
    atLeastMs: (since) => clock.monotonic() - since.monotonic,
  };
}

interface TermTiming {
  readonly epoch: number;
  /** How long after sending a renewal writes may be in flight. */
  readonly writeMs: number;
  /** No write starts within this time before that. */
  readonly inFlightMs: number;
  readonly watch: Stopwatch;
}

/** The term of the current leader, with its clock and the writes in flight. */
export class HeldTerm implements Term {
  readonly epoch: number;
  readonly #timing: TermTiming;
  readonly #ended = new AbortController();
  #renewed: TimeMark;
  #inFlight = 0;
  #lastAborted: TimeMark | undefined;

  constructor(timing: TermTiming, renewed: TimeMark) {
    this.epoch = timing.epoch;
    this.#timing = timing;
    this.#renewed = renewed;
  }

  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** Writes that have started and not ended. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** `sent` was taken before the renewal was sent. */
  renewed(sent: TimeMark): void {
    this.#renewed = sent;
  }

  end(reason: string): void {
    this.#ended.abort(new Error(reason));
  }

  /** How long until writes in flight must end. */
  remainingMs(): number {
    return this.#timing.writeMs - this.#timing.watch.atMostMs(this.#renewed);
  }

  isCertain(): boolean {
    return !this.signal.aborted && this.remainingMs() > this.#timing.inFlightMs;
  }

  /** How long until an aborted write has either taken effect or never will. */
  settlingMs(): number {
    if (!this.#lastAborted) return 0;
    return Math.max(0, this.#timing.inFlightMs - this.#timing.watch.atLeastMs(this.#lastAborted));
  }

  async guard<T>(operation: string, write: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (!this.isCertain()) throw new NotLeaderError(operation);
    this.#inFlight++;
    try {
      return await write(this.signal);
    } catch (cause) {
      // Without a response, the write may still take effect: a request that was sent cannot be taken back.
      if (!(cause instanceof ApiError)) this.#lastAborted = this.#timing.watch.mark();
      throw this.signal.aborted ? new NotLeaderError(operation, { wasAborted: true, cause }) : cause;
    } finally {
      this.#inFlight--;
    }
  }
}

/** For a single replica without leader election: one term for the whole process. */
export function soleLeader(): Elector {
  let term: Term | undefined;
  return {
    get term() {
      return term;
    },
    isCertain: () => term !== undefined,
    async guard(operation, write) {
      if (!term) throw new NotLeaderError(operation);
      return await write(term.signal);
    },
    async run(stop, lead) {
      if (stop.aborted) return;
      const ended = new AbortController();
      term = { epoch: 0, signal: ended.signal };
      try {
        await lead(term);
      } finally {
        term = undefined;
        ended.abort(new Error("stepping down"));
      }
    },
  };
}
