/**
 * Keeps one scope of a store (one namespace, or all) in sync with the API server: a list, then one watch after another.
 *
 * Two failures are silent: the connection is dead but open, or an event is lost. The store recovers from both within a
 * minute, if a comparison takes less than a second. While the watch runs, the store is compared with the versions of all
 * objects, over a fresh connection: every 20 to 30 seconds while the kind changes, and every 54 to 56 seconds otherwise. An
 * object that differs, and whose version the watch does not report in the next second, shows that the watch is broken: what
 * differs is read again, and a new watch starts. If comparisons take longer, the time between them grows to five minutes.
 *
 * The comparison requests only metadata: with 5,000 objects of 3 KB it takes 2.8 MB and 35 ms, a list 15 MB and 150 ms.
 * Comparing counts would be cheaper, but would miss changes. With more objects, it requests only what has changed since
 * the last comparison, and everything every two hours, and soon after anything has failed.
 */
import type { Client, ListOptions, WatchEvent } from "../client/client.ts";
import { sleep, type Clock } from "../clock.ts";
import { withDeadline } from "../client/requests/deadline.ts";
import { isExpired, isTooManyRequests } from "../client/errors.ts";
import {
  findDifferences,
  isDifferent,
  later,
  replayDifferences,
  replaySeconds,
  unreported,
  type Compared,
  type Differences,
} from "./differences.ts";
import type { Entry, IndexedStore } from "./indexed-store.ts";
import { keyOf, parseKey, type Key, type KubeObject, type Resource } from "../resource.ts";
import { backoff } from "../client/requests/retry.ts";
import type { ReflectorCounts } from "./store.ts";
import { longestSilenceMs, restMs, type FeedTiming } from "./timing.ts";

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

// After this many consecutive failures, the resource version of the watch may be the problem.
const failuresBeforeList = 3;

/** After so many lists whose snapshot expired on the way, everything is read in a single page, whatever memory that takes. */
const expiredBeforeSinglePage = 3;
/** More differences are repaired by a list. */
const maxRepairs = 50;

interface Listed<T> {
  readonly version: string;
  /** Undefined if the store has them already. */
  readonly entries?: ReadonlyMap<Key, Entry<T>>;
}

interface Verified {
  readonly version: string;
  /** Then everything is compared again. */
  readonly expiresAt: number;
}

export class Feed<T extends KubeObject> {
  readonly counts: Mutable<ReflectorCounts> = { lists: 0, watches: 0, comparisons: 0, differences: 0 };
  readonly #options: FeedOptions<T>;
  /** The resource version of the store. Undefined: a list is needed. */
  #resourceVersion: string | undefined;
  /**
   * The latest version that the API server has shown. If a later response has an earlier one, etcd was restored from a backup, and the
   * versions since then are used again: the same version of an object may have other content.
   */
  #latestVersion = 0;
  /** Of the last event of the watch. */
  #eventVersion = 0;
  /** How long the last comparison took. One that the end of the watch interrupted counts as at least as long as the one before it. */
  #comparisonMs = 0;
  /** Not everything is compared before this time, even if that is due. */
  #restsUntil = -Infinity;
  /** A large store was equal to the API server at this version. Undefined: everything must be compared. */
  #verified: Verified | undefined;
  /** Or listed. A watch may end before the next comparison is due. */
  #comparedAt = -Infinity;
  #changedAt = -Infinity;
  /** The versions of what the watch has reported since the comparison in progress began. */
  #reported: Map<Key, number> | undefined;
  #lastResponseAt = -Infinity;
  #failures = 0;
  /** Consecutive lists whose snapshot expired on the way. */
  #expiredLists = 0;

  constructor(options: FeedOptions<T>) {
    this.#options = options;
  }

  get synced(): boolean {
    return this.counts.lists > 0;
  }

  get healthy(): boolean {
    const { clock, timing } = this.#options;
    const silenceMs = clock.monotonic() - this.#lastResponseAt;
    return this.synced && silenceMs <= longestSilenceMs(this.#comparisonMs, timing);
  }

  /** Until the signal aborts. Never throws. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      try {
        await this.#watch(this.#resourceVersion ?? (await this.#list(signal)), signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#fail(error);
        await sleep(clock, this.#backoff(this.#failures), signal);
      }
    }
  }

  #fail(error: unknown): void {
    this.#failures++;
    this.#compareAllSoon();
    const isStuck = this.#failures >= failuresBeforeList && !isTooManyRequests(error);
    if (isExpired(error) || isStuck) this.#resourceVersion = undefined;
    // The API server may have been restarted after a restore: compare as soon as it can be reached, and the last comparison allows it.
    if (this.#failures === 1) this.#comparedAt = -Infinity;
    this.#options.onError(error, isExpired(error) ? "resource version expired" : "cannot reach the API server");
  }

  #backoff(failures: number): number {
    const { timing, random } = this.#options;
    return backoff(failures, { baseMs: timing.restartMinMs, maxMs: timing.restartMaxMs, random });
  }

  /** Returns when the watch does not report what has changed. */
  async #untilDifferent(signal: AbortSignal): Promise<Differences> {
    let failures = 0;
    for (;;) {
      if (failures > 0) await sleep(this.#options.clock, this.#backoff(failures), signal);
      else await this.#pause(signal);
      signal.throwIfAborted();
      const found = await this.#compare(signal);
      if (found && isDifferent(found)) return found;
      failures = found ? 0 : failures + 1;
    }
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const { clock, timing, random } = this.#options;
    const part = random();
    const rest = async (minMs: number, maxMs: number): Promise<void> => {
      const endsAt = this.#comparedAt + minMs + part * (maxMs - minMs);
      await sleep(clock, Math.max(0, endsAt - clock.monotonic()), signal);
    };
    // Until then, the watch may fail again.
    if (this.#failures > 0) await sleep(clock, this.#backoff(this.#failures), signal);
    await rest(timing.compareMinMs, timing.compareMaxMs);
    const isQuiet = clock.monotonic() - this.#changedAt > timing.quietMs;
    if (isQuiet) await rest(timing.quietCompareMinMs, timing.quietCompareMaxMs);
  }

  /** Undefined if it failed: the store is usable, and the watch may work. */
  async #compare(signal: AbortSignal): Promise<Differences | undefined> {
    const { clock, timing, store, onError } = this.#options;
    const reported = new Map<Key, number>();
    this.#reported = reported;
    try {
      const replayed = await this.#replayDifferences(signal);
      const found = replayed ?? (await this.#readDifferences(signal));
      this.counts.comparisons++;
      this.#lastResponseAt = clock.monotonic();
      // Until everything is listed again, no version is trusted, even if the API server has reached the former ones again by then.
      if (found.isRestored) this.#latestVersion = Infinity;
      if (isDifferent(found)) await sleep(clock, timing.settleMs, signal);
      // If the watch has ended meanwhile, the comparison is repeated with the next one.
      signal.throwIfAborted();
      this.#comparedAt = clock.monotonic();
      const differences = unreported(found, store, reported);
      if (isDifferent(differences)) this.#compareAllSoon();
      else if (replayed) this.#advanceVerified(replayed.version);
      else this.#verify(found.version);
      // Unless the watch is ahead of it.
      if (!isDifferent(found) && reported.size === 0) this.#reach(this.#latest(found.version));
      return differences;
    } catch (error) {
      if (signal.aborted) throw error;
      this.#compareAllSoon();
      onError(error, "comparison failed");
      return undefined;
    } finally {
      this.#reported = undefined;
    }
  }

  get #verifiedVersion(): string | undefined {
    const isCurrent = this.#verified && this.#options.clock.monotonic() < this.#verified.expiresAt;
    return isCurrent ? this.#verified?.version : undefined;
  }

  /** After everything was compared. */
  #verify(version: string): void {
    const { clock, timing, random } = this.#options;
    // Not at the same time for all kinds.
    const forMs = timing.compareAllMs * (0.9 + 0.1 * random());
    this.#verified = this.#isLarge ? { version, expiresAt: clock.monotonic() + forMs } : undefined;
  }

  /** After what has changed was compared: that does not replace the next complete comparison. */
  #advanceVerified(version: string): void {
    this.#verified = this.#verified && { ...this.#verified, version: later(version, this.#verified.version) };
  }

  /** Until the last complete comparison allows the next one, what has changed is compared: the store was equal at that version. */
  #compareAllSoon(): void {
    this.#verified = this.#verified && { ...this.#verified, expiresAt: this.#restsUntil };
  }

  get #isLarge(): boolean {
    const { store, namespace, timing } = this.#options;
    return store.keys(namespace).drop(timing.largeSize).next().done !== true;
  }

  /**
   * Undefined if everything must be compared. If a second is not enough for all changes, those after the last one that the watch has
   * reported are left to the next comparison. One that ends before its time, or before what the watch has reported, is incomplete: the API
   * server stops, or is busy.
   */
  async #replayDifferences(parent: AbortSignal): Promise<Differences | undefined> {
    const { clock, timing } = this.#options;
    const from = this.#verifiedVersion;
    if (from === undefined) return undefined;
    const eventVersion = this.#eventVersion;
    const startedAt = clock.monotonic();
    // The connection may be dead but open.
    const limits = { clock, ms: replaySeconds * 1000 + timing.answerMs, signal: parent };
    const found = await withDeadline(limits, (signal) => replayDifferences(this.#compared(signal), from));
    // The clock of the API server may be a little faster.
    const isEarly = clock.monotonic() - startedAt < replaySeconds * 900;
    if (found && (isEarly || Number(found.version) < eventVersion)) throw new Error("changes were not reported again");
    return found;
  }

  /**
   * Before and after this there is a rest, even if the end of the watch interrupted it: a watch or a replay that keeps breaking must not
   * repeat it each time. One that failed is repeated with backoff.
   */
  async #readDifferences(signal: AbortSignal): Promise<Differences> {
    const { clock, timing } = this.#options;
    const waitMs = this.#restsUntil - clock.monotonic();
    if (waitMs > 0) await sleep(clock, waitMs, signal);
    signal.throwIfAborted();
    this.#reported?.clear();
    const startedAt = clock.monotonic();
    const latestVersion = this.#latestVersion;
    const rest = (): void =>
      this.#rest(Math.max(clock.monotonic() - startedAt, signal.aborted ? this.#comparisonMs : 0));
    try {
      const onPage = (): void => void (this.#lastResponseAt = clock.monotonic());
      const found = await findDifferences(this.#compared(signal), { pageSize: timing.largeSize, onPage });
      rest();
      return Number(found.version) < latestVersion ? { ...found, isRestored: true } : found;
    } catch (error) {
      if (signal.aborted) rest();
      throw error;
    }
  }

  #compared(signal: AbortSignal): Compared<T> {
    const { client, resource, store } = this.#options;
    return { client, resource, store, call: this.#callOptions(signal) };
  }

  #rest(comparisonMs: number): void {
    const { clock, timing } = this.#options;
    this.#comparisonMs = comparisonMs;
    this.#restsUntil = clock.monotonic() + restMs(comparisonMs, timing);
  }

  /**
   * Reads only what differs, after the end of the broken watch. What changes during the repair is reported by the next watch,
   * which starts at the version of the comparison; it would report again what the broken one has reported since.
   */
  async #repair(found: Differences, signal: AbortSignal): Promise<void> {
    const { version, changed, removed, isOvertaken, isRestored } = found;
    const { client, resource, store, trim } = this.#options;
    this.counts.differences++;
    this.#resourceVersion = undefined;
    if (isOvertaken || isRestored || changed.size + removed.length > maxRepairs) return;
    const current = new Map<Key, T | undefined>(removed.map((key) => [key, undefined]));
    for (const key of changed.keys()) {
      const { name, namespace } = parseKey(key);
      const named = [this.#options.fieldSelector, `metadata.name=${name}`].filter((each) => each !== undefined);
      const { items } = await client.list(resource, {
        ...this.#callOptions(signal),
        ...(namespace !== undefined && { namespace }),
        fieldSelector: named.join(","),
      });
      current.set(key, items[0]);
    }
    signal.throwIfAborted();
    for (const [key, object] of current) {
      if (object) store.set(trim(object));
      else store.remove(key);
    }
    this.#reach(version);
  }

  /** A replay may be behind the watch. */
  #latest(version: string): string {
    return this.#resourceVersion === undefined ? version : later(version, this.#resourceVersion);
  }

  #reach(version: string | undefined): void {
    this.#resourceVersion = version;
    this.#latestVersion = Math.max(this.#latestVersion, Number(version ?? 0) || 0);
  }

  async #list(signal: AbortSignal): Promise<string> {
    const { store, namespace, clock } = this.#options;
    const { version, entries } = await this.#readAll(signal);
    signal.throwIfAborted();
    this.#lastResponseAt = clock.monotonic();
    this.#comparedAt = clock.monotonic();
    this.#changedAt = clock.monotonic();
    this.#latestVersion = 0;
    this.#eventVersion = 0;
    this.#reach(version);
    this.counts.lists++;
    if (entries) await store.replace(entries, namespace);
    this.#verify(version);
    if (this.counts.lists === 1) this.#options.onSync();
    return version;
  }

  /** A list whose snapshot expires on the way is repeated in pages at first: a single page of a long history may exceed the memory limit. */
  async #readAll(signal: AbortSignal): Promise<Listed<T>> {
    const isSinglePage = this.#expiredLists >= expiredBeforeSinglePage;
    try {
      const listed = await this.#readPages({ ...this.#callOptions(signal), ...(isSinglePage && { pageSize: 0 }) });
      this.#expiredLists = 0;
      return listed;
    } catch (error) {
      // A single page that fails, for example because it takes too long, must not be the only way forever.
      this.#expiredLists = isExpired(error) ? this.#expiredLists + 1 : 0;
      throw error;
    }
  }

  /**
   * An object that has not changed stays the same, and each page is trimmed and archived before the next is read. Nobody uses the
   * store before the first list is complete, so its pages are stored as they arrive: a second map of all objects and a list of changes
   * would take much memory. If that list fails, the next one replaces what it stored.
   */
  async #readPages(options: Omit<ListOptions, "transform">): Promise<Listed<T>> {
    const { client, resource, store, namespace, clock } = this.#options;
    const isFirst = !this.synced && store.keys(namespace).next().done === true;
    const entries = new Map<Key, Entry<T>>();
    const latestVersion = this.#latestVersion;
    let version = "";
    try {
      for await (const page of client.pages<T>(resource, { ...options, prefetch: true })) {
        this.#lastResponseAt = clock.monotonic();
        const isRestored = Number(page.resourceVersion) < latestVersion;
        for (const object of page.items) entries.set(...this.#entryFor(object, isRestored));
        if (isFirst) {
          store.add(entries);
          entries.clear();
        }
        version = page.resourceVersion;
      }
    } catch (error) {
      store.discard(entries);
      throw error;
    }
    return { version, ...(!isFirst && { entries }) };
  }

  #entryFor(object: T, isRestored: boolean): [Key, Entry<T>] {
    const { store, trim } = this.#options;
    const key = keyOf(object);
    const known = isRestored ? undefined : store.entryOf(object, key);
    return [key, known ?? store.createEntry(trim(object))];
  }

  async #watch(from: string, parent: AbortSignal): Promise<void> {
    const { clock, timing, random } = this.#options;
    const durationMs = timing.watchMinMs + random() * (timing.watchMaxMs - timing.watchMinMs);
    const startedAt = clock.monotonic();
    this.counts.watches++;
    // A watch that lasted for a while resets the failure count, even if it fails later.
    const stopTimer = clock.after(timing.answerMs, () => (this.#failures = 0));
    try {
      const limits = { clock, ms: durationMs + timing.graceMs, signal: parent };
      const found = await withDeadline(limits, (signal) => this.#followAndCompare(from, durationMs, signal));
      if (found) {
        await this.#repair(found, parent);
        return;
      }
    } finally {
      stopTimer();
    }
    this.#lastResponseAt = clock.monotonic();
    const lastedMs = clock.monotonic() - startedAt;
    if (lastedMs < timing.graceMs) throw new Error("the watch ended early");
    // The API server ends all watches without an error when it reads everything from etcd again, for example after a restore.
    if (lastedMs < durationMs) this.#compareAllSoon();
    this.#failures = 0;
  }

  /** Until the watch ends, or a comparison shows that it is broken. */
  async #followAndCompare(from: string, durationMs: number, parent: AbortSignal): Promise<Differences | undefined> {
    const end = new AbortController();
    const signal = AbortSignal.any([parent, end.signal]);
    const followed = this.#follow(from, durationMs, signal).then(() => undefined);
    const compared = this.#untilDifferent(signal);
    try {
      return await Promise.race([followed, compared]);
    } finally {
      end.abort();
      await Promise.allSettled([followed, compared]);
    }
  }

  async #follow(from: string, durationMs: number, signal: AbortSignal): Promise<void> {
    const { client, resource, clock, timing } = this.#options;
    const events = client.watch(resource, {
      ...this.#callOptions(signal),
      timeoutMs: timing.answerMs,
      resourceVersion: from,
      serverTimeoutSeconds: Math.ceil(durationMs / 1000),
    });
    for await (const event of events) {
      if (signal.aborted) return;
      this.#lastResponseAt = clock.monotonic();
      this.#applyEvent(event);
    }
  }

  #applyEvent(event: WatchEvent<T>): void {
    const { store, trim } = this.#options;
    switch (event.type) {
      case "BOOKMARK":
        this.#reach(event.resourceVersion);
        return;
      case "DELETED":
        store.remove(keyOf(event.object));
        break;
      case "ADDED":
      case "MODIFIED":
        store.set(trim(event.object));
        break;
    }
    this.#eventVersion = Number(event.object.metadata.resourceVersion);
    this.#reported?.set(keyOf(event.object), this.#eventVersion);
    this.#changedAt = this.#options.clock.monotonic();
    this.#reach(event.object.metadata.resourceVersion ?? this.#resourceVersion);
  }

  #callOptions(signal: AbortSignal): Omit<ListOptions, "transform"> {
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
}
