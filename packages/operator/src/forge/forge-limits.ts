/**
 * Which forges can be called now, for each namespace: a forge that does not respond, or that limits requests, is left alone for a
 * while, and only a few requests to it run at a time. So one slow forge does not delay the others. Those that wait for a forge are
 * woken in order when it is their turn. Times are on the monotonic clock: the wall clock may be set.
 */
import type { ForgeErrorKind } from "@pko/forge";
import type { Key } from "@pko/kube";

import { jittered } from "../shared/pauses.ts";

interface Line {
  inFlight: number;
  failures: number;
  restUntil: number;
  /** In order. Whether they were woken, and have neither started a request nor decided to wait or to leave since. */
  readonly waiting: Map<Key, { isWoken: boolean }>;
  /** Those that wait for the end of the rest. They know when that is. */
  readonly resting: Set<Key>;
}

export interface ForgeState {
  readonly isBusy: boolean;
  /** 0 if the forge can be called. */
  readonly restUntil: number;
}

interface Request<T> {
  /** By namespace and host: a tenant must not be able to delay others. */
  readonly line: string;
  readonly key: Key;
  readonly send: () => Promise<T>;
  /** Finds out whether it failed. */
  readonly failureIn: (result: T) => Failure | undefined;
}

const maxInFlight = 2;
const leastRestMs = 1000;
const mostRestMs = 60_000;
/** Of more, those that nobody waits for are forgotten, even if they rest: tenants choose the hosts. */
const maxKnown = 1000;

export class ForgeLimits {
  readonly #lines = new Map<string, Line>();
  readonly #lineOf = new Map<Key, string>();
  readonly #wake: (key: Key) => void;

  constructor(wake: (key: Key) => void) {
    this.#wake = wake;
  }

  /** For this key: nobody overtakes those that wait already. */
  stateOf(line: string, key: Key): ForgeState {
    const { inFlight = 0, restUntil = 0, waiting } = this.#lines.get(line) ?? {};
    const isOvertaking = waiting !== undefined && waiting.size > 0 && !waiting.has(key);
    return { isBusy: inFlight >= maxInFlight || isOvertaking, restUntil };
  }

  /** Wakes the key when it is its turn. One that was woken, and waits again, keeps its place. */
  wait(line: string, key: Key): void {
    if (this.#lineOf.get(key) !== line) this.leave(key);
    this.#lineOf.set(key, line);
    this.#known(line).waiting.set(key, { isWoken: false });
    this.#wakeNext(line);
  }

  /** The key is reconciled when the rest ends; before that, `endRest` wakes it. */
  rest(line: string, key: Key): void {
    this.leave(key);
    this.#lineOf.set(key, line);
    this.#lines.get(line)?.resting.add(key);
  }

  /** A forge limits requests for some credentials, which have changed. */
  endRest(line: string): void {
    const known = this.#lines.get(line);
    if (!known) return;
    known.restUntil = 0;
    this.#wakeResting(known);
  }

  /** It waits for no forge. */
  leave(key: Key): void {
    const line = this.#lineOf.get(key);
    if (line === undefined) return;
    this.#lineOf.delete(key);
    this.#lines.get(line)?.waiting.delete(key);
    this.#lines.get(line)?.resting.delete(key);
    this.#wakeNext(line);
  }

  /** Sends a request. If the forge is busy, nothing is sent. */
  async run<T>({ line, key, send, failureIn }: Request<T>): Promise<T | "busy"> {
    if (this.stateOf(line, key).isBusy) return "busy";
    const known = this.#known(line);
    known.inFlight += 1;
    this.leave(key);
    try {
      const result = await send();
      const failure = failureIn(result);
      if (failure) this.#forgetOld(failure.at);
      recordResult(known, failure, line);
      return result;
    } finally {
      known.inFlight -= 1;
      this.#wakeNext(line);
    }
  }

  #known(line: string): Line {
    const known = this.#lines.get(line) ?? {
      inFlight: 0,
      failures: 0,
      restUntil: 0,
      waiting: new Map(),
      resting: new Set<Key>(),
    };
    this.#lines.set(line, known);
    return known;
  }

  #forgetOld(now: number): void {
    if (this.#lines.size < maxKnown) return;
    const unused = [...this.#lines].filter(([, { inFlight, waiting }]) => inFlight === 0 && waiting.size === 0);
    for (const [line, { restUntil }] of unused) if (restUntil <= now) this.#forget(line);
    // Of the namespace with the most: a tenant with many hosts must not end the rest of another one's forge.
    const rest = unused.filter(([line]) => this.#lines.has(line));
    const byNamespace = Map.groupBy(rest, ([line]) => line.split(" ", 1)[0]);
    const most = [...byNamespace.values()].toSorted((a, b) => b.length - a.length)[0] ?? [];
    for (const [line] of most.slice(0, Math.max(0, this.#lines.size - maxKnown + 1))) this.#forget(line);
  }

  /** Its rest ends with it. */
  #forget(line: string): void {
    const known = this.#lines.get(line);
    this.#lines.delete(line);
    if (known) this.#wakeResting(known);
  }

  #wakeResting({ resting }: Line): void {
    const keys = [...resting];
    resting.clear();
    for (const key of keys) this.#wake(key);
  }

  #wakeNext(line: string): void {
    const known = this.#lines.get(line);
    if (!known) return;
    const { inFlight, failures, waiting } = known;
    if (inFlight === 0 && failures === 0 && waiting.size === 0) this.#forget(line);
    let free =
      maxInFlight -
      inFlight -
      waiting
        .values()
        .filter(({ isWoken }) => isWoken)
        .toArray().length;
    for (const [key, place] of waiting) {
      if (free <= 0) return;
      if (place.isWoken) continue;
      place.isWoken = true;
      free -= 1;
      this.#wake(key);
    }
  }
}

interface Failure {
  readonly error: ForgeErrorKind;
  readonly retryAfterMs?: number;
  readonly at: number;
}

const temporary: ReadonlySet<ForgeErrorKind> = new Set<ForgeErrorKind>(["unavailable", "rateLimited"]);

function recordResult(known: Line, failure: Failure | undefined, line: string): void {
  if (!failure || !temporary.has(failure.error)) {
    known.failures = 0;
    return;
  }
  known.failures += 1;
  const growing = Math.min(mostRestMs, leastRestMs * 2 ** (known.failures - 1));
  known.restUntil = failure.at + jittered(Math.max(growing, failure.retryAfterMs ?? 0), line);
}
