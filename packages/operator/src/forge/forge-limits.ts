/**
 * Which forges can be called now, for each namespace: a forge that does not respond, or that limits requests, is left alone for a
 * while, and only a few requests to it run at a time. So one slow forge does not delay the others.
 */
import type { ForgeErrorKind } from "@pko/forge";

import { jittered } from "../shared/pauses.ts";

interface Line {
  inFlight: number;
  failures: number;
  restUntil: number;
}

export interface ForgeState {
  readonly isBusy: boolean;
  /** In milliseconds since the epoch; 0 if the forge can be called. */
  readonly restUntil: number;
}

const maxInFlight = 2;
const leastRestMs = 1000;
const mostRestMs = 60_000;

export class ForgeLimits {
  /** By namespace and host: a tenant must not be able to delay others. */
  readonly #lines = new Map<string, Line>();

  stateOf(line: string): ForgeState {
    const { inFlight = 0, restUntil = 0 } = this.#lines.get(line) ?? {};
    return { isBusy: inFlight >= maxInFlight, restUntil };
  }

  /** Runs a request. `failureIn` finds out whether it failed. */
  async run<T>(line: string, request: () => Promise<T>, failureIn: (result: T) => Failure | undefined): Promise<T> {
    const known = this.#lines.get(line) ?? { inFlight: 0, failures: 0, restUntil: 0 };
    this.#lines.set(line, known);
    known.inFlight += 1;
    try {
      const result = await request();
      const failure = failureIn(result);
      if (!failure || !temporary.has(failure.error)) {
        known.failures = 0;
      } else {
        known.failures += 1;
        const growing = Math.min(mostRestMs, leastRestMs * 2 ** (known.failures - 1));
        known.restUntil = failure.at + jittered(Math.max(growing, failure.retryAfterMs ?? 0), line);
      }
      return result;
    } finally {
      known.inFlight -= 1;
      if (known.inFlight === 0 && known.failures === 0) this.#lines.delete(line);
    }
  }
}

interface Failure {
  readonly error: ForgeErrorKind;
  readonly retryAfterMs?: number;
  /** In milliseconds since the epoch. */
  readonly at: number;
}

const temporary: ReadonlySet<ForgeErrorKind> = new Set<ForgeErrorKind>(["unavailable", "rateLimited"]);
