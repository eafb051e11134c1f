/**
 * Keeps one scope of a store (one namespace, or all) equal to the API server: a list, then one short watch after the other.
 *
 * Two things can go wrong without anybody saying so, and both heal within a minute:
 *
 * - The connection is dead but open. The server is asked to end each watch after 20 to 30 seconds; a watch that has not
 *   ended 5 seconds later is dead, however quiet the kind is, and the next one uses a connection of its own.
 * - An event is lost, or what the server tells is wrong. After each watch, the store is compared with the versions of all
 *   objects, and read anew when they differ. That asks the server for metadata alone: with 5,000 objects of 3 KB a
 *   comparison is 2.8 MB and 35 ms, a list 15 MB and 150 ms. Comparing counts would be cheaper still, and blind to changes.
 */
import type { Client, ListOptions, WatchEvent } from "../client/client.ts";
import { sleep, type Clock } from "../clock.ts";
import { withDeadline } from "../client/deadline.ts";
import { isExpired, isTooManyRequests } from "../client/errors.ts";
import type { IndexedStore } from "./indexed-store.ts";
import { keyOf, metadataOf, type KubeObject, type Resource } from "../resource.ts";
import { backoff } from "../client/retry.ts";
import type { ReflectorCounts } from "./store.ts";

export interface FeedTiming {
  /** A watch is asked to last between these. */
  readonly watchMinMs: number;
  readonly watchMaxMs: number;
  /** How much longer it may take to end. */
  readonly graceMs: number;
  /** How soon a watch must begin, and a page of a list must be there. */
  readonly answerMs: number;
  /** The part of its time that a feed may spend comparing: it does so more rarely once that takes half a second. */
  readonly comparingShare: number;
  readonly restartMinMs: number;
  readonly restartMaxMs: number;
}

export const productionTiming: FeedTiming = {
  watchMinMs: 20_000,
  watchMaxMs: 30_000,
  graceMs: 5000,
  answerMs: 10_000,
  comparingShare: 0.02,
  restartMinMs: 200,
  restartMaxMs: 10_000,
};

/** No healthy feed is without a word from the server for longer. */
function longestSilenceMs(timing: FeedTiming): number {
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

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

// After so many failures in a row, something may be wrong with where the watch begins.
const failuresBeforeList = 3;

export class Feed<T extends KubeObject> {
  readonly counts: Mutable<ReflectorCounts> = { lists: 0, watches: 0, comparisons: 0, differences: 0 };
  readonly #options: FeedOptions<T>;
  /** The version up to which the store knows everything. Undefined: only a list can tell. */
  #position: string | undefined;
  #compareAt = Infinity;
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
    return this.synced && clock.monotonic() - this.#lastWord <= longestSilenceMs(timing);
  }

  /** Until the signal aborts. Never throws. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, timing, random } = this.#options;
    while (!signal.aborted) {
      try {
        if (this.#position !== undefined && clock.monotonic() >= this.#compareAt) await this.#compare(signal);
        await this.#watch(this.#position ?? (await this.#list(signal)), signal);
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
    if (isExpired(error) || isStuck) this.#position = undefined;
    this.#options.onError(
      error,
      isExpired(error) ? "too far behind the API server" : "out of touch with the API server",
    );
  }

  /** The store is in use and the watch works: a comparison that fails now is only due again after the next watch. */
  async #compare(signal: AbortSignal): Promise<void> {
    const { client, resource, clock, timing, onError } = this.#options;
    const startedAt = clock.monotonic();
    try {
      const list = await client.list(metadataOf(resource), { ...this.#call(signal), pageSize: 0 });
      this.counts.comparisons++;
      if (this.#isEqualTo(list.items)) {
        this.#position = list.resourceVersion;
      } else {
        this.counts.differences++;
        await this.#list(signal);
      }
      this.#compareAt = clock.monotonic() + (clock.monotonic() - startedAt) / timing.comparingShare;
      this.#lastWord = clock.monotonic();
    } catch (error) {
      if (signal.aborted) throw error;
      onError(error, "the comparison failed");
    }
  }

  #isEqualTo(listed: readonly KubeObject[]): boolean {
    const { store } = this.#options;
    const stored = store.list().filter((object) => this.#isInScope(object));
    return stored.length === listed.length && listed.every((object) => isSame(store.get(keyOf(object)), object));
  }

  async #list(signal: AbortSignal): Promise<string> {
    const { client, resource, store, trim, clock } = this.#options;
    const list = await client.list(resource, {
      ...this.#call(signal),
      transform: (object) => {
        this.#lastWord = clock.monotonic();
        const stored = store.get(keyOf(object));
        return stored && isSame(stored, object) ? stored : trim(object);
      },
    });
    signal.throwIfAborted();
    this.#lastWord = clock.monotonic();
    this.#compareAt = clock.monotonic();
    this.#position = list.resourceVersion;
    this.counts.lists++;
    store.replace(list.items, (object) => this.#isInScope(object));
    if (this.counts.lists === 1) this.#options.onSync();
    return list.resourceVersion;
  }

  async #watch(from: string, parent: AbortSignal): Promise<void> {
    const { clock, timing, random } = this.#options;
    const lastingMs = timing.watchMinMs + random() * (timing.watchMaxMs - timing.watchMinMs);
    const startedAt = clock.monotonic();
    this.counts.watches++;
    // One that surely began and lived for a while ends a row of failures, however it ends itself.
    const stopTimer = clock.after(timing.answerMs, () => (this.#failures = 0));
    try {
      const limits = { clock, ms: lastingMs + timing.graceMs, signal: parent };
      await withDeadline(limits, (signal) => this.#follow(from, lastingMs, signal));
    } finally {
      stopTimer();
    }
    this.#lastWord = clock.monotonic();
    if (clock.monotonic() - startedAt < timing.watchMinMs / 4) throw new Error("the watch ended too soon");
    this.#failures = 0;
  }

  async #follow(from: string, lastingMs: number, signal: AbortSignal): Promise<void> {
    const { client, resource, clock, timing } = this.#options;
    const events = client.watch(resource, {
      ...this.#call(signal),
      timeoutMs: timing.answerMs,
      resourceVersion: from,
      serverTimeoutSeconds: Math.ceil(lastingMs / 1000),
    });
    for await (const event of events) {
      if (signal.aborted) return;
      this.#lastWord = clock.monotonic();
      this.#take(event);
    }
  }

  #take(event: WatchEvent<T>): void {
    const { store, trim } = this.#options;
    switch (event.type) {
      case "BOOKMARK":
        this.#position = event.resourceVersion;
        return;
      case "DELETED":
        store.remove(keyOf(event.object));
        break;
      case "ADDED":
      case "MODIFIED":
        store.set(trim(event.object));
        break;
    }
    this.#position = event.object.metadata.resourceVersion ?? this.#position;
  }

  #call(signal: AbortSignal): Omit<ListOptions, "transform"> {
    const { namespace, labelSelector, fieldSelector, timing } = this.#options;
    return {
      ...(namespace !== undefined && { namespace }),
      ...(labelSelector !== undefined && { labelSelector }),
      ...(fieldSelector !== undefined && { fieldSelector }),
      timeoutMs: timing.answerMs * 2,
      freshConnection: true,
      signal,
    };
  }

  #isInScope(object: KubeObject): boolean {
    const { namespace } = this.#options;
    return namespace === undefined || object.metadata.namespace === namespace;
  }
}

function isSame(stored: KubeObject | undefined, listed: KubeObject): boolean {
  const [one, other] = [stored?.metadata, listed.metadata];
  return one?.uid === other.uid && one?.resourceVersion === other.resourceVersion;
}
