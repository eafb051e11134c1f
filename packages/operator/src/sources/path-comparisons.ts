/**
 * Which files differ between two commits of a repository, for path filters and plans that wait for an approval. Nothing blocks here: a Stack reads the
 * result, if there is one, and its key is woken when there is. Stacks that need the same comparison share it.
 */
import { namespaceOf, silentLogger, systemClock, type Clock, type Key, type Logger } from "@pko/kube";

import { contentHash } from "../shared/digest.ts";
import type { CommitComparer } from "./git-lister.ts";
import type { ComparedCommits } from "./git-http.ts";
import { hostOf, type GitRemote } from "./git-remote.ts";
import { exceeding, sizeOf } from "./kept-paths.ts";
import { pollLogKeys } from "./poll-log-keys.ts";
import type { Poll, StartedPoll } from "./poll-queue.ts";
import type { CommitPair } from "./source-view.ts";
import { isSlowResult, TimedQueue, type Slow, type TimedLimits } from "./timed-queue.ts";

export type Comparison = GitRemote & CommitPair;

export interface PathComparisons {
  /** Undefined while it is not known. A comparison with a server that cannot be reached is repeated for a while. */
  latest(wanted: Comparison): ComparedCommits | undefined;
  /** The Stack needs these comparisons from now on, and no others. It is woken when a result is known. */
  follow(key: Key, wanted: readonly Comparison[]): void;
  /** Ends all comparisons and forgets everything. */
  stop(): void;
}

interface ComparisonOptions {
  readonly comparer: CommitComparer;
  readonly wake: (key: Key) => void;
  readonly clock?: Clock;
  readonly log?: Logger;
}

/** A comparison takes a few requests, and up to some 30 MiB of memory if the server is hostile. Two namespaces cannot hold all slots of suspects. */
const limits: TimedLimits = {
  total: 8,
  perHost: 6,
  perNamespace: 3,
  perHostOfNamespace: 3,
  suspects: 5,
  suspectsPerHost: 3,
  suspectsPerNamespace: 2,
  // For all requests of one comparison.
  timeoutMs: 20_000,
};
/** A server that cannot be reached is tried again after these pauses. Then the result is unknown: nobody waits for it forever. */
const retriesMs = [5000, 15_000, 45_000, 120_000];
/** A server that names a longer time is tried earlier. */
const maxRetryAfterMs = 5 * 60_000;
/** Of all paths, in bytes. One comparison may have two million characters, and there may be one for each Stack. */
const maxKeptBytes = 32 * 1024 * 1024;
/** What would take more memory is left to the agent. */
const notKept: ComparedCommits = { kind: "unknown", reason: "the commits differ in too many files" };

interface Entry {
  readonly comparison: Comparison;
  readonly followers: Set<Key>;
  readonly poll: QueuedComparison;
  result?: ComparedCommits;
  /** Of the result. */
  bytes: number;
  /** Attempts that did not reach the server. */
  failures: number;
  /** Whether the last attempt was slow. */
  isSlow: boolean;
  cancelRetry?: () => void;
}

type Unreachable = Extract<ComparedCommits, { kind: "unreachable" }>;

interface QueuedComparison extends Poll {
  readonly id: string;
}

export function pathComparisons(options: ComparisonOptions): PathComparisons {
  return new Comparisons(options);
}

class Comparisons implements PathComparisons {
  readonly #options: ComparisonOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #entries = new Map<string, Entry>();
  readonly #idsOf = new Map<Key, ReadonlySet<string>>();
  readonly #queue: TimedQueue<QueuedComparison>;
  /** Of all entries. */
  #keptBytes = 0;
  #lifetime = new AbortController();

  constructor(options: ComparisonOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silentLogger;
    this.#queue = new TimedQueue(limits, this.#clock);
  }

  latest(wanted: Comparison): ComparedCommits | undefined {
    return this.#entries.get(idOf(wanted))?.result;
  }

  follow(key: Key, wanted: readonly Comparison[]): void {
    const byId = new Map(wanted.map((comparison) => [idOf(comparison), comparison]));
    const former = this.#idsOf.get(key) ?? [];
    for (const id of former) if (!byId.has(id)) this.#forget(key, id);
    if (byId.size === 0) this.#idsOf.delete(key);
    else this.#idsOf.set(key, new Set(byId.keys()));
    for (const [id, comparison] of byId) {
      const entry = this.#entries.get(id);
      if (entry) this.#share(key, entry);
      else this.#start(key, id, comparison);
    }
  }

  stop(): void {
    this.#lifetime.abort();
    this.#lifetime = new AbortController();
    for (const entry of this.#entries.values()) this.#cancel(entry);
    this.#entries.clear();
    this.#idsOf.clear();
    this.#queue.forgetHosts();
  }

  #forget(key: Key, id: string): void {
    const entry = this.#entries.get(id);
    entry?.followers.delete(key);
    if (!entry) return;
    if (entry.followers.size > 0) {
      const namespace = namespaceOf(key);
      const isNeeded = [...entry.followers].some((other) => namespaceOf(other) === namespace);
      if (!isNeeded) this.#queue.leave(entry.poll, namespace);
      return;
    }
    this.#cancel(entry);
    this.#entries.delete(id);
  }

  #cancel({ poll, bytes, cancelRetry }: Entry): void {
    cancelRetry?.();
    this.#keptBytes -= bytes;
    this.#queue.remove(poll);
  }

  #share(key: Key, { followers, poll, result }: Entry): void {
    const isNew = !followers.has(key);
    followers.add(key);
    this.#joinQueue(poll, namespaceOf(key));
    // The comparison may have ended after the Stack has read that it is not known.
    if (result && isNew) this.#options.wake(key);
  }

  /** The comparison waits in the line of this namespace as well. */
  #joinQueue(poll: QueuedComparison, namespace: string): void {
    if (poll.namespaces.has(namespace)) return;
    this.#queue.join(poll, namespace);
    this.#pump();
  }

  #start(key: Key, id: string, comparison: Comparison): void {
    const namespace = namespaceOf(key);
    const host = hostOf(comparison.url);
    const poll: QueuedComparison = {
      id,
      namespaces: new Set([namespace]),
      host,
      endpoint: host,
      isRequested: false,
      suspicion: (each) => (entry.failures > 0 ? "failing" : this.#queue.suspicion(host, each, entry.isSlow)),
    };
    const entry: Entry = { comparison, followers: new Set([key]), poll, bytes: 0, failures: 0, isSlow: false };
    this.#entries.set(id, entry);
    this.#enqueue(entry);
  }

  #enqueue({ poll }: Entry): void {
    this.#queue.push(poll);
    this.#pump();
  }

  #pump(): void {
    for (let next = this.#queue.next(); next; next = this.#queue.next()) void this.#run(next, this.#lifetime.signal);
  }

  async #run(started: StartedPoll<QueuedComparison>, signal: AbortSignal): Promise<void> {
    const { id } = started.poll;
    const entry = this.#entries.get(id);
    const startedAt = this.#clock.monotonic();
    const result = entry && (await this.#compare(entry, started, signal));
    started.end();
    if (entry && !signal.aborted && this.#entries.get(id) === entry && result) this.#end(entry, result, startedAt);
    this.#pump();
  }

  #end(entry: Entry, result: ComparedCommits | Slow, startedAt: number): void {
    const { poll, followers } = entry;
    const namespaces = new Set([...followers].map(namespaceOf));
    if (isSlowResult(result)) {
      entry.isSlow = true;
      this.#queue.recordSlow(poll.host, namespaces, startedAt);
      this.#enqueue(entry);
    } else {
      const isResponse = result.kind === "compared";
      entry.isSlow = this.#queue.recordEnd(poll.host, { startedAt, namespaces, isResponse });
      this.#record(entry, result);
    }
  }

  #record(entry: Entry, result: ComparedCommits): void {
    const before = problemIn(entry.result);
    this.#keep(entry, result.kind === "unreachable" ? this.#retry(entry, result) : result);
    if (before !== undefined && before === problemIn(entry.result)) return;
    const dropped = this.#dropLargest();
    for (const each of new Set([entry, ...dropped])) for (const key of each.followers) this.#options.wake(key);
  }

  #keep(entry: Entry, result: ComparedCommits): void {
    const bytes = sizeOf(result);
    this.#keptBytes += bytes - entry.bytes;
    Object.assign(entry, { result, bytes });
  }

  /** The comparisons whose paths do not fit into memory any longer. */
  #dropLargest(): Entry[] {
    if (this.#keptBytes <= maxKeptBytes) return [];
    const kept = [...this.#entries.values()].map((entry) => {
      const [key = ""] = entry.followers;
      return { entry, namespace: namespaceOf(key), bytes: entry.bytes };
    });
    const dropped = exceeding(kept, maxKeptBytes).map(({ entry }) => entry);
    for (const entry of dropped) this.#keep(entry, notKept);
    return dropped;
  }

  /** What is known until the next attempt has ended, or for good. */
  #retry(entry: Entry, { kind, reason, retryAfterMs = 0 }: Unreachable): ComparedCommits {
    const pauseMs = retriesMs[entry.failures++];
    if (pauseMs === undefined) return { kind: "unknown", reason };
    entry.cancelRetry = this.#clock.after(Math.max(pauseMs, Math.min(retryAfterMs, maxRetryAfterMs)), () =>
      this.#enqueue(entry),
    );
    return { kind, reason };
  }

  async #compare(
    { comparison, followers }: Entry,
    started: StartedPoll<QueuedComparison>,
    signal: AbortSignal,
  ): Promise<ComparedCommits | Slow> {
    const { from, to, ...remote } = comparison;
    const { host } = started.poll;
    const late: ComparedCommits = { kind: "unreachable", reason: "the Git server did not respond in time" };
    const failed = (error: unknown): ComparedCommits => {
      this.#log.error("comparing two commits failed unexpectedly", { ...pollLogKeys(host, followers), error });
      return { kind: "unknown", reason: "the commits could not be compared" };
    };
    return await this.#queue.run(started, { signal, late, failed }, (ending) =>
      this.#options.comparer.compare(remote, { from, to }, ending),
    );
  }
}

/** Why the server cannot be reached. */
const problemIn = (result: ComparedCommits | undefined): string | undefined =>
  result?.kind === "unreachable" ? result.reason : undefined;

const ids = new WeakMap<Comparison, string>();

/** Computed once for an object: the heads of pull requests are followed again with each pass. */
function idOf(comparison: Comparison): string {
  const { url, credentials, ca, from, to } = comparison;
  const id = ids.get(comparison) ?? contentHash([url, credentials, ca, from, to]);
  ids.set(comparison, id);
  return id;
}
