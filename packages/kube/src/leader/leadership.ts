/**
 * Leadership as a controller meets it: terms, and writes that are only done while leading is certain.
 *
 * Why a clock is enough. A holder counts its time from *before* it sends a renewal; a rival counts the lease's duration
 * from *after* it has seen that renewal. So at any moment the holder's count is ahead of every rival's, however the
 * machines' clocks are set: only their rates matter. The holder stops writing at `renewDeadline`, a rival may begin at
 * `leaseDuration`; what lies between (5 s by default) pays for clocks that run at different rates, for requests that are on
 * their way when the term ends, and for a pause of the process (garbage collection, a stopped container) between the
 * check and the send. A longer pause ends in a check, and clocks may lie: a wall clock can be set, a steady one stands still
 * while the machine sleeps. So the holder believes whichever says more time has passed, and a rival only the steady one.
 *
 * What a check cannot rule out: a write that has passed it and has not left when a longer pause begins. The kernel's alarm
 * (kernel-alarm.ts) ends such a process before it goes on. Where there is none, deterministic names and server-side apply keep
 * the harm small, and a write that must never be stale names the version it was decided on.
 */
import type { Clock } from "../clock.ts";
import { ApiError } from "../client/errors.ts";

/** A write was not done, or was cut off, because this replica does not certainly lead. */
export class NotLeaderError extends Error {
  readonly operation: string;

  constructor(operation: string, options: { readonly cutOff?: boolean; readonly cause?: unknown } = {}) {
    super(`${operation}: ${options.cutOff ? "cut off, no longer leading" : "refused, not leading"}`, {
      cause: options.cause,
    });
    this.name = "NotLeaderError";
    this.operation = operation;
  }
}

/** One stretch of leading. */
export interface Term {
  /** Grows with each change of hands, across all replicas. */
  readonly epoch: number;
  /** Aborts as soon as the term has ended, for whatever reason. */
  readonly signal: AbortSignal;
}

export interface Leadership {
  /** The present term; undefined while another replica leads or may lead. */
  readonly term: Term | undefined;
  /** True only if no other replica can be leading at this instant. */
  isCertain(): boolean;
  /** Runs a write if leading is certain, under a signal that aborts when the term ends. Rejects with NotLeaderError. */
  guard<T>(operation: string, write: (signal: AbortSignal) => Promise<T>): Promise<T>;
}

/** Leads by turns: runs `lead` once for each term it wins, until `stop` aborts and the last one has returned. */
export interface Elector extends Leadership {
  /** `lead` returns soon after `stop` or the term's signal aborts; no further term begins before it has. */
  run(stop: AbortSignal, lead: (term: Term) => Promise<void>): Promise<void>;
}

export interface Stopwatch {
  /** A mark to measure from. */
  mark(): TimeMark;
  /** Not less than what has passed: for who must stop in time. */
  atMostMs(since: TimeMark): number;
  /** Not more than what has passed: for who must wait long enough. */
  atLeastMs(since: TimeMark): number;
}

export interface TimeMark {
  readonly wall: number;
  readonly steady: number;
}

export function stopwatch(clock: Clock): Stopwatch {
  return {
    mark: () => ({ wall: clock.now(), steady: clock.monotonic() }),
    atMostMs: (since) => Math.max(clock.now() - since.wall, clock.monotonic() - since.steady),
    atLeastMs: (since) => clock.monotonic() - since.steady,
  };
}

interface Tenure {
  readonly epoch: number;
  /** Until this long after a renewal was sent, writes may be under way. */
  readonly writeMs: number;
  /** Until this long before that, writes may begin. */
  readonly inFlightMs: number;
  readonly watch: Stopwatch;
}

/** A term that is being held, with its clock and the writes that are under way. */
export class HeldTerm implements Term {
  readonly epoch: number;
  readonly #tenure: Tenure;
  readonly #ended = new AbortController();
  #renewed: TimeMark;
  #inFlight = 0;
  #lastCut: TimeMark | undefined;

  constructor(tenure: Tenure, renewed: TimeMark) {
    this.epoch = tenure.epoch;
    this.#tenure = tenure;
    this.#renewed = renewed;
  }

  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** Writes that have begun and not ended. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** `sent` was marked before the renewal left. */
  renewed(sent: TimeMark): void {
    this.#renewed = sent;
  }

  end(reason: string): void {
    this.#ended.abort(new Error(reason));
  }

  /** How long until writes that are under way must end. */
  remainingMs(): number {
    return this.#tenure.writeMs - this.#tenure.watch.atMostMs(this.#renewed);
  }

  isCertain(): boolean {
    return !this.signal.aborted && this.remainingMs() > this.#tenure.inFlightMs;
  }

  /** How long until a write that was cut off can be taken to have had its effect, or to have none. */
  settlingMs(): number {
    if (!this.#lastCut) return 0;
    return Math.max(0, this.#tenure.inFlightMs - this.#tenure.watch.atLeastMs(this.#lastCut));
  }

  async guard<T>(operation: string, write: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (!this.isCertain()) throw new NotLeaderError(operation);
    this.#inFlight++;
    try {
      return await write(this.signal);
    } catch (cause) {
      // Without an answer the write may yet be done: it had left, and no one can call it back.
      if (!(cause instanceof ApiError)) this.#lastCut = this.#tenure.watch.mark();
      throw this.signal.aborted ? new NotLeaderError(operation, { cutOff: true, cause }) : cause;
    } finally {
      this.#inFlight--;
    }
  }
}

/** For a single replica without election: one term, that of the process. */
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
