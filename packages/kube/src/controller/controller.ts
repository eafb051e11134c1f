/**
 * A controller: changes of objects become keys, keys wait in a fair queue, and `reconcile` handles one key at a time. It
 * receives only the key of an object, never what happened: it reads the current state from the stores.
 *
 * A reconcile takes one step and returns. It waits only for its own reads and writes; the end of a long operation is
 * observed by a watch or by a requeue. A reconcile that misses its deadline is logged, and its calls are aborted.
 */
import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";

import { underSignals, whenAborted } from "../abort.ts";
import type { BackoffPolicy } from "./backoff.ts";
import { systemClock, type Clock } from "../clock.ts";
import { controllerMetrics, type ControllerMetrics } from "./controller-metrics.ts";
import { NotLeaderError } from "../leader/leadership.ts";
import { silentLogger, type Logger, type LogKeys } from "../telemetry/log.ts";
import { metricsRegistry, type Registry } from "../telemetry/metrics.ts";
import { ownerKeys, type OwnerKind } from "./owners.ts";
import { done, retry, workQueue, type Result, type WorkQueue } from "./queue.ts";
import { keyOf, parseKey, type Key, type KubeObject } from "../resource.ts";
import type { Change, Reflector } from "../store/store.ts";

export interface ReconcileContext {
  /** For every call. Aborts at the deadline, when leadership is lost, and when the grace period of a stop is over. */
  readonly signal: AbortSignal;
  /** Has the controller, the object and the ID of this reconcile as keys. */
  readonly log: Logger;
  /** The start of the reconcile in milliseconds since the epoch: the only wall clock time it uses. */
  readonly now: number;
  /** The same moment on the monotonic clock, for schedules that a controller keeps in memory. */
  readonly monotonic: number;
  /** The number of consecutive failures of this key before this reconcile. */
  readonly failures: number;
  /** Identifies this reconcile in the log and in traces. */
  readonly reconcileID: string;
}

export type Reconcile = (key: Key, context: ReconcileContext) => Promise<Result>;

/** Objects whose owners are reconciled when they change. */
interface Owned {
  readonly reflector: Reflector<KubeObject>;
  readonly ownerKind: OwnerKind;
}

/** Objects whose changes the controller maps to keys. */
interface Watched<T extends KubeObject = KubeObject> {
  readonly reflector: Reflector<T>;
  map(change: Change<T>): Iterable<Key>;
}

/** Gives `map` the type of its reflector's objects. */
export function watching<T extends KubeObject>(watched: Watched<T>): Watched {
  return watched;
}

export interface ControllerOptions<T extends KubeObject> {
  readonly name: string;
  /** The objects to reconcile. */
  readonly reflector: Reflector<T>;
  readonly owns?: readonly Owned[];
  readonly watches?: readonly Watched[];
  /** Which changes of the objects trigger a reconcile; all of them if absent. */
  readonly predicate?: (change: Change<T>) => boolean;
  readonly reconcile: Reconcile;
  /** Called when the controller starts. The function that it returns is called after the last reconcile. */
  readonly whileRunning?: () => () => void;
  readonly concurrency?: number;
  readonly backoff?: BackoffPolicy;
  readonly deadlineMs?: number;
  readonly log?: Logger;
  /** Further keys of the log for an object. It is undefined if the object was deleted. */
  readonly logKeys?: (name: string, object: T | undefined, key: Key) => LogKeys;
  readonly metrics?: Registry;
  readonly clock?: Clock;
}

interface Lifetime {
  /** Take no more keys; let running reconciles finish. */
  readonly stop: AbortSignal;
  /** Abort running reconciles. */
  readonly kill: AbortSignal;
}

export interface Controller {
  readonly name: string;
  readonly reflectors: readonly Reflector<KubeObject>[];
  /** Waits for the stores, then reconciles until `stop` aborts; returns when the last reconcile has ended. */
  run(lifetime: Lifetime): Promise<void>;
  /** For changes that no watch reports. Ignored while not running: a start reconciles everything. */
  enqueue(key: Key): void;
  /** How long the longest-running reconcile has been running; 0 if none is running. */
  longestRunningMs(): number;
}

export function controller<T extends KubeObject>(options: ControllerOptions<T>): Controller {
  const own: Watched<T> = {
    reflector: options.reflector,
    map: (change) => ((options.predicate?.(change) ?? true) ? [change.key] : []),
  };
  const owns = (options.owns ?? []).map(({ reflector, ownerKind }): Watched => ({
    reflector,
    map: (change) => ownerKeys(change, ownerKind),
  }));
  const logKeys = (key: Key): LogKeys => ({
    ...parseKey(key),
    ...options.logKeys?.(parseKey(key).name, options.reflector.store.get(key), key),
  });
  return new KeyController({ ...options, logKeys }, [own, ...owns, ...(options.watches ?? [])]);
}

interface Settings extends Omit<
  ControllerOptions<KubeObject>,
  "reflector" | "predicate" | "owns" | "watches" | "logKeys"
> {
  readonly logKeys: (key: Key) => LogKeys;
}

const defaults = { concurrency: 10, deadlineMs: 30_000 };

/**
 * An archived object is scheduled only if it is due within the next two of these intervals: there may be 100,000 of them, and the
 * schedule of one takes as much memory as a fifth of the object.
 */
const archiveSweepMs = 60_000;
const clockCheckMs = 60_000;
/** A wall clock that is set by less moves nothing that matters. */
const clockToleranceMs = 10_000;

class KeyController implements Controller {
  readonly name: string;
  readonly reflectors: readonly Reflector<KubeObject>[];
  readonly #settings: Settings;
  readonly #sources: readonly Watched[];
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #metrics: ControllerMetrics;
  readonly #registry: Registry;
  readonly #deadlineMs: number;
  readonly #concurrency: number;
  #queue: WorkQueue | undefined;

  constructor(settings: Settings, sources: readonly Watched[]) {
    this.name = settings.name;
    this.reflectors = [...new Set(sources.map(({ reflector }) => reflector))];
    this.#settings = settings;
    this.#sources = sources;
    this.#clock = settings.clock ?? systemClock;
    this.#log = (settings.log ?? silentLogger).child({ controller: settings.name });
    this.#registry = settings.metrics ?? metricsRegistry();
    this.#deadlineMs = settings.deadlineMs ?? defaults.deadlineMs;
    this.#concurrency = settings.concurrency ?? defaults.concurrency;
    this.#metrics = controllerMetrics(this.#registry, settings.name, {
      concurrency: this.#concurrency,
      running: () => this.#queue?.running ?? 0,
    });
  }

  async run({ stop, kill }: Lifetime): Promise<void> {
    if (this.#queue) throw new Error(`controller ${this.name} is already running`);
    const { name } = this;
    const { backoff } = this.#settings;
    const queue = workQueue({
      name,
      concurrency: this.#concurrency,
      clock: this.#clock,
      metrics: this.#registry,
      ...(backoff && { backoff }),
    });
    this.#queue = queue;
    // Subscribe first, then list: no change in between is missed.
    const unsubscribe = this.#sources.map((source) => this.#subscribe(source, queue));
    const stopped = this.#settings.whileRunning?.();
    let stopTimers: (() => void)[] = [];
    try {
      if (!(await this.#synced(stop))) return;
      for (const source of this.#sources) this.#addExisting(source, queue);
      this.#log.info("controller started", { keys: queue.depth, workers: this.#concurrency });
      queue.start(async (key, failures) => this.#unlessAtRest(key, await this.#reconcile(key, { failures, kill })));
      stopTimers = [this.#sweepArchive(queue), this.#watchClock(queue)];
      await whenAborted(stop);
    } finally {
      for (const each of [...stopTimers, ...unsubscribe]) each();
      await queue.stop();
      stopped?.();
      this.#queue = undefined;
      this.#log.info("controller stopped");
    }
  }

  enqueue(key: Key): void {
    this.#queue?.add(key);
  }

  longestRunningMs(): number {
    return this.#queue?.longestRunningMs() ?? 0;
  }

  async #synced(stop: AbortSignal): Promise<boolean> {
    try {
      await Promise.all(this.reflectors.map((reflector) => reflector.waitForSync(stop)));
    } catch (error) {
      if (!stop.aborted) throw error;
    }
    return !stop.aborted;
  }

  #subscribe(source: Watched, queue: WorkQueue): () => void {
    const { store } = source.reflector;
    return store.subscribe((change) => {
      // Before the first list is complete, there is nothing to reconcile; `#addExisting` adds what it contains.
      if (store.hasSynced && !isUnchanged(change)) this.#addMapped(source, change, queue);
    });
  }

  /**
   * Objects that existed before we subscribed, and owners that were deleted while their objects still exist. Nothing is due for
   * archived objects: neither they nor their owners are reconciled because of them.
   */
  #addExisting(source: Watched, queue: WorkQueue): void {
    const { store } = source.reflector;
    for (const object of store.active()) this.#addMapped(source, { key: keyOf(object), after: object }, queue);
  }

  /** Schedules the archived objects that are due soon, now and regularly. Returns a function that ends it. */
  #sweepArchive(queue: WorkQueue): () => void {
    const [own] = this.#sources;
    let [cancel, sweptAt] = [(): void => undefined, -Infinity];
    const sweep = (): void => {
      const now = this.#clock.now();
      for (const [key, restsUntil] of own?.reflector.store.archived() ?? []) {
        // What was due before has been reconciled: its retries are not made more frequent.
        const isSoon = restsUntil > sweptAt && restsUntil - now < 2 * archiveSweepMs;
        if (isSoon) queue.addAfter(key, restsUntil - now);
      }
      sweptAt = now;
      cancel = this.#clock.after(archiveSweepMs, sweep);
    };
    sweep();
    return () => cancel();
  }

  /**
   * Reconciles every object after the wall clock was set, as at a start: what waits does so on the monotonic clock, for as long as
   * the old time required. Returns a function that ends it.
   */
  #watchClock(queue: WorkQueue): () => void {
    const offset = (): number => this.#clock.now() - this.#clock.monotonic();
    let [cancel, known] = [(): void => undefined, offset()];
    const check = (): void => {
      const setByMs = offset() - known;
      if (Math.abs(setByMs) > clockToleranceMs) {
        known = offset();
        this.#log.info("the wall clock was set: every object is reconciled", { setByMs: Math.round(setByMs) });
        for (const source of this.#sources) this.#addExisting(source, queue);
      }
      cancel = this.#clock.after(clockCheckMs, check);
    };
    cancel = this.#clock.after(clockCheckMs, check);
    return () => cancel();
  }

  /** Nothing is due for an archived object until the time that the store has, and a sweep schedules it then. */
  #unlessAtRest(key: Key, result: Result): Result {
    if (result.kind !== "requeue") return result;
    const restMs = (this.#sources[0]?.reflector.store.restsUntil(key) ?? -Infinity) - this.#clock.now();
    return restMs >= 2 * archiveSweepMs ? done : result;
  }

  #addMapped(source: Watched, change: Change<KubeObject>, queue: WorkQueue): void {
    try {
      for (const key of source.map(change)) queue.add(key);
    } catch (error) {
      this.#log.error("a change could not be mapped to keys", { object: change.key, error });
    }
  }

  async #reconcile(key: Key, run: { failures: number; kill: AbortSignal }): Promise<Result> {
    const now = this.#clock.now();
    const monotonic = this.#clock.monotonic();
    const reconcileID = newReconcileId();
    const log = this.#log.child({ ...this.#settings.logKeys(key), reconcileID });
    const elapsed = (): number => this.#clock.monotonic() - monotonic;
    try {
      const result = await this.#withDeadline(log, run.kill, (signal) =>
        this.#settings.reconcile(key, { signal, log, now, monotonic, failures: run.failures, reconcileID }),
      );
      this.#metrics.ended(result.kind, elapsed());
      log.debug("reconciled", { result: result.kind, ms: Math.round(elapsed()) });
      return result;
    } catch (error) {
      this.#metrics.ended("error", elapsed());
      // Expected during a handover or stop: the next leader reconciles everything.
      if (run.kill.aborted || error instanceof NotLeaderError) log.info("reconcile aborted", { error });
      else log.error("reconcile failed", { error, failures: run.failures + 1 });
      return retry;
    }
  }

  async #withDeadline<T>(log: Logger, kill: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const deadline = new AbortController();
    let late = 0;
    const onDeadline = (): void => {
      late += this.#deadlineMs;
      this.#metrics.overdue();
      log.warn("reconcile runs longer than its deadline", { runningMs: late, deadlineMs: this.#deadlineMs });
      deadline.abort(new Error(`reconcile took longer than ${this.#deadlineMs} ms`));
      // Repeat the warning as long as the reconcile ignores its signal.
      cancel = this.#clock.after(this.#deadlineMs, onDeadline);
    };
    let cancel = this.#clock.after(this.#deadlineMs, onDeadline);
    try {
      return await underSignals([kill, deadline.signal], work);
    } finally {
      cancel();
    }
  }
}

/** Short, because it has to be unique only among the lines that one looks at. */
const newReconcileId = (): string => randomBytes(5).toString("hex");

/** A new list reports every object, changed or not. After a restore of etcd, the same version may have other content. */
function isUnchanged({ before, after }: Change<KubeObject>): boolean {
  const version = after?.metadata.resourceVersion;
  return version !== undefined && version === before?.metadata.resourceVersion && isDeepStrictEqual(before, after);
}
