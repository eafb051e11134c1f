/**
 * Keeps one scope of a store (one namespace, or all) equal to the API server: a list, then one short watch after the other.
 *
 * Three things can go wrong without anybody saying so, and each heals within a minute:
 *
 * - The connection is dead but open. The server is asked to end each watch after 20 to 30 seconds; a watch that has not
 *   ended 5 seconds later is dead. So silence is noticed after 35 seconds at most, however quiet the kind is, and the
 *   next watch uses a connection of its own.
 * - An event is lost. Each watch begins not where the last one ended but where one began some 40 seconds before: what
 *   happened meanwhile is told again, at least once, and what the store knows already is passed over. A quiet kind costs
 *   nothing that way, while comparing with a list costs the size of all objects (figures: docs/adr).
 * - The server's own history is wrong. Every ten minutes, a list is compared with the store.
 */
import type { Client, WatchEvent } from "./client.ts";
import { sleep, type Clock } from "./clock.ts";
import { withDeadline } from "./deadline.ts";
import { isExpired, isTooManyRequests } from "./errors.ts";
import type { IndexedStore } from "./indexed-store.ts";
import { keyOf, type Key, type KubeObject, type Resource } from "./resource.ts";
import { isNewer, newest } from "./resource-version.ts";
import { backoff } from "./retry.ts";

export interface FeedTiming {
  /** A watch is asked to last between these. */
  readonly watchMinMs: number;
  readonly watchMaxMs: number;
  /** How much longer it may take to end. */
  readonly graceMs: number;
  /** How soon a watch must begin, and a page of a list must be there. */
  readonly answerMs: number;
  /** How far back each watch begins: less than the 75 seconds that the API server remembers at least. */
  readonly overlapMs: number;
  readonly relistMs: number;
  readonly restartMinMs: number;
  readonly restartMaxMs: number;
}

export const productionTiming: FeedTiming = {
  watchMinMs: 20_000,
  watchMaxMs: 30_000,
  graceMs: 5000,
  answerMs: 10_000,
  overlapMs: 40_000,
  relistMs: 600_000,
  restartMinMs: 200,
  restartMaxMs: 10_000,
};

/** No healthy feed is without a word from the server for longer. */
export function longestSilenceMs(timing: FeedTiming): number {
  return timing.watchMaxMs + timing.graceMs + timing.restartMinMs + 1000;
}

export interface FeedOptions<T extends KubeObject> {
  readonly client: Client;
  readonly resource: Resource<T>;
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly store: IndexedStore<T>;
  readonly trim: (object: T) => T;
  readonly clock: Clock;
  readonly random: () => number;
  readonly timing: FeedTiming;
  readonly onError: (error: unknown, what: string) => void;
  readonly onSync: () => void;
}

/** What a feed has done so far. */
export interface FeedCounts {
  lists: number;
  watches: number;
  /** Events that only the second telling brought. */
  healed: number;
}

/** A moment from which a watch may begin. */
interface Checkpoint {
  readonly version: string;
  readonly at: number;
}

interface Watch {
  readonly signal: AbortSignal;
  /** What is not newer than this has been told before. */
  readonly knownAtStart: string;
  readonly lastingMs: number;
}

// After so many in a row, something may be wrong with where the watch begins.
const failuresBeforeList = 3;

export class Feed<T extends KubeObject> {
  readonly counts: FeedCounts = { lists: 0, watches: 0, healed: 0 };
  readonly #options: FeedOptions<T>;
  /** Oldest first. Empty: the store must be filled by a list. */
  #checkpoints: Checkpoint[] = [];
  /** The newest version of which the server has told. */
  #seen = "0";
  /** The versions of what was deleted since the oldest checkpoint, lest an old event bring it back. */
  readonly #deleted = new Map<Key, string>();
  #relistAt = Infinity;
  #lastWord = -Infinity;
  #failures = 0;

  constructor(options: FeedOptions<T>) {
    this.#options = options;
  }

  get synced(): boolean {
    return this.counts.lists > 0;
  }

  get healthy(): boolean {
    const { clock, timing } = this.#options;
    return this.synced && clock.now() - this.#lastWord <= longestSilenceMs(timing);
  }

  /** Until the signal aborts. Never throws. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, timing, random } = this.#options;
    while (!signal.aborted) {
      try {
        if (this.#checkpoints.length === 0) await this.#list(signal);
        else if (clock.now() >= this.#relistAt) await this.#relist(signal);
        await this.#watch(signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#fail(error);
        const policy = { baseMs: timing.restartMinMs, maxMs: timing.restartMaxMs, random };
        await sleep(clock, backoff(this.#failures, policy), signal);
      }
    }
  }

  #fail(error: unknown): void {
    this.#failures++;
    const isStuck = this.#failures >= failuresBeforeList && !isTooManyRequests(error);
    if (isExpired(error) || isStuck) this.#checkpoints = [];
    this.#options.onError(error, isExpired(error) ? "the watch is too far behind" : "the watch broke");
  }

  /** The store is in use and the watch works: a list that fails now is only tried again later. */
  async #relist(signal: AbortSignal): Promise<void> {
    const { clock, timing, onError } = this.#options;
    try {
      await this.#list(signal);
    } catch (error) {
      if (signal.aborted) throw error;
      onError(error, "the periodic list failed");
      this.#relistAt = clock.now() + timing.watchMaxMs;
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { client, resource, store, trim, clock, timing, random } = this.#options;
    const list = await client.list(resource, {
      ...this.#scope(),
      signal,
      timeoutMs: timing.answerMs * 2,
      freshConnection: true,
      transform: (object) => {
        this.#lastWord = clock.now();
        const stored = store.get(keyOf(object));
        return stored && isSame(stored, object) ? stored : trim(object);
      },
    });
    signal.throwIfAborted();
    this.#lastWord = clock.now();
    this.#relistAt = clock.now() + timing.relistMs * (0.9 + random() / 5);
    this.#seen = list.resourceVersion;
    this.#checkpoints = [{ version: list.resourceVersion, at: clock.now() }];
    this.#deleted.clear();
    this.counts.lists++;
    const { namespace } = this.#options;
    store.replace(list.items, (object) => namespace === undefined || object.metadata.namespace === namespace);
    if (this.counts.lists === 1) this.#options.onSync();
  }

  async #watch(parent: AbortSignal): Promise<void> {
    const { clock, timing, random } = this.#options;
    const from = this.#nextStart();
    const knownAtStart = this.#seen;
    const lastingMs = timing.watchMinMs + random() * (timing.watchMaxMs - timing.watchMinMs);
    this.counts.watches++;
    const startedAt = clock.now();
    // One that surely began and lived for a while ends a row of failures, however it ends itself.
    const stopTimer = clock.after(timing.answerMs, () => (this.#failures = 0));
    const limits = { clock, ms: lastingMs + timing.graceMs, signal: parent };
    try {
      await withDeadline(limits, (signal) => this.#follow(from, { signal, knownAtStart, lastingMs }));
    } finally {
      stopTimer();
    }
    this.#lastWord = clock.now();
    if (clock.now() - startedAt < timing.watchMinMs / 4) throw new Error("the watch ended too soon");
    this.#failures = 0;
  }

  async #follow(from: string, watch: Watch): Promise<void> {
    const { client, resource, clock, timing } = this.#options;
    const { signal, knownAtStart, lastingMs } = watch;
    const events = client.watch(resource, {
      ...this.#scope(),
      resourceVersion: from,
      serverTimeoutSeconds: Math.ceil(lastingMs / 1000),
      timeoutMs: timing.answerMs,
      freshConnection: true,
      signal,
    });
    for await (const event of events) {
      if (signal.aborted) return;
      this.#lastWord = clock.now();
      this.#take(event, knownAtStart);
    }
  }

  #scope(): { namespace?: string; labelSelector?: string; fieldSelector?: string } {
    const { namespace, labelSelector, fieldSelector } = this.#options;
    return {
      ...(namespace !== undefined && { namespace }),
      ...(labelSelector !== undefined && { labelSelector }),
      ...(fieldSelector !== undefined && { fieldSelector }),
    };
  }

  /** Forgets the checkpoints that are older than needed and adds the present. */
  #nextStart(): string {
    const { clock, timing } = this.#options;
    const now = clock.now();
    const enough = this.#checkpoints.findLastIndex((checkpoint) => checkpoint.at <= now - timing.overlapMs);
    this.#checkpoints = this.#checkpoints.slice(Math.max(enough, 0));
    const from = this.#checkpoints[0]?.version ?? this.#seen;
    this.#checkpoints.push({ version: this.#seen, at: now });
    for (const [key, version] of this.#deleted) if (!isNewer(version, from)) this.#deleted.delete(key);
    return from;
  }

  #take(event: WatchEvent<T>, knownAtStart: string): void {
    if (event.type === "BOOKMARK") {
      this.#seen = newest(event.resourceVersion, this.#seen);
      return;
    }
    const { store, trim } = this.#options;
    const key = keyOf(event.object);
    const version = event.object.metadata.resourceVersion ?? "";
    this.#seen = newest(version, this.#seen);
    const known = store.get(key)?.metadata.resourceVersion ?? this.#deleted.get(key);
    if (known !== undefined && !isNewer(version, known)) return;
    if (!isNewer(version, knownAtStart)) this.counts.healed++;
    if (event.type === "DELETED") {
      this.#deleted.set(key, version);
      store.remove(key);
    } else {
      this.#deleted.delete(key);
      store.set(trim(event.object));
    }
  }
}

function isSame(stored: KubeObject, listed: KubeObject): boolean {
  const [a, b] = [stored.metadata, listed.metadata];
  return a.uid === b.uid && a.resourceVersion === b.resourceVersion;
}
