/**
 * The work queue: keys to reconcile, handed to `concurrency` workers. A namespace without a running key does not wait for
 * slow keys of others: it gets an additional worker.
 *
 *      addAfter               add, or it is due              a worker is free
 *   ─────────────▶ waiting ───────────────────────▶ ready ───────────────────▶ running ──▶ forgotten
 *                     ▲                               ▲                           │
 *                     └────── requeue, retry ─────────┴─ added while running ─────┘
 *
 * A key is in one state at a time, so it is never queued twice and never runs concurrently. Of several requested times,
 * the earliest wins: one reconcile covers all earlier requests. A request for a running key is kept until it ends, since
 * the running reconcile may have read the state before the change.
 */
import { backoffDelay, defaultBackoff, type BackoffPolicy } from "./backoff.ts";
import { systemClock, type Clock } from "../clock.ts";
import { fairQueue } from "./fair-queue.ts";
import { metricsRegistry, type Registry } from "../telemetry/metrics.ts";
import { queueMetrics, type QueueMetrics } from "./queue-metrics.ts";
import { namespaceOf, type Key } from "../resource.ts";
import { Schedule } from "./schedule.ts";

/** When a key is reconciled next. */
export type Result =
  { readonly kind: "done" } | { readonly kind: "requeue"; readonly afterMs: number } | { readonly kind: "retry" };

/** Nothing to do until something changes. */
export const done: Result = { kind: "done" };
/** Not a failure: reconcile again after `afterMs`. */
export const requeueAfter = (afterMs: number): Result => ({ kind: "requeue", afterMs });
/** Reconcile again at `time`, if there is one. `now` is when this reconcile started. */
export const requeueAt = (time: number | undefined, now: number): Result =>
  time === undefined ? done : requeueAfter(Math.max(0, time - now));
/** Reconcile again after a delay that grows with each consecutive retry. */
export const retry: Result = { kind: "retry" };

/** `failures` is the number of consecutive failures of this key before this run. */
export type Work = (key: Key, failures: number) => Promise<Result>;

export interface QueueOptions {
  readonly name: string;
  readonly concurrency: number;
  readonly backoff?: BackoffPolicy;
  readonly clock?: Clock;
  readonly metrics?: Registry;
  readonly random?: () => number;
}

export interface WorkQueue {
  add(key: Key): void;
  addAfter(key: Key, ms: number): void;
  /** Starts processing keys; keys added before are queued until then. */
  start(work: Work): void;
  /** Starts no more keys and drops waiting ones. Resolves when the last running key has ended. */
  stop(): Promise<void>;
  /** Keys that are ready and wait for a worker. */
  readonly depth: number;
  /** Keys that are not due yet. */
  readonly waiting: number;
  readonly running: number;
  /** How long the longest-running key has been running; 0 if none is running. */
  longestRunningMs(): number;
}

export function workQueue(options: QueueOptions): WorkQueue {
  return new KeyedQueue(options);
}

/** The maximum number of workers, as a multiple of `concurrency`: a bound even with a thousand namespaces. */
const maxWorkersFactor = 4;

/** All times are on the monotonic clock: setting the wall clock must not move a key. */
interface Running {
  readonly startedAt: number;
  /** The earliest time requested since it started. */
  nextAt?: number;
}

class KeyedQueue implements WorkQueue {
  readonly #options: QueueOptions;
  readonly #clock: Clock;
  readonly #metrics: QueueMetrics;
  readonly #waiting: Schedule;
  readonly #line = fairQueue();
  readonly #readySince = new Map<Key, number>();
  readonly #running = new Map<Key, Running>();
  /** The number of running keys in each namespace. */
  readonly #runningIn = new Map<string, number>();
  readonly #failures = new Map<Key, number>();
  #state: "new" | "started" | "stopped" = "new";
  #work: Work = () => Promise.resolve(done);
  #pumping = false;
  readonly #idle = Promise.withResolvers<void>();

  constructor(options: QueueOptions) {
    if (!(options.concurrency >= 1)) throw new Error(`queue ${options.name}: concurrency must be at least 1`);
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#waiting = new Schedule(this.#clock, (key) => this.#enqueue(key));
    this.#metrics = queueMetrics(options.metrics ?? metricsRegistry(), options.name, {
      depth: () => this.depth,
      oldestMs: () => this.#oldestReadyMs(),
      runningMs: () => [...this.#running.values()].map((run) => this.#since(run.startedAt)),
    });
  }

  add(key: Key): void {
    this.#addAt(key, this.#clock.monotonic());
  }

  addAfter(key: Key, ms: number): void {
    this.#addAt(key, this.#clock.monotonic() + Math.max(0, ms));
  }

  start(work: Work): void {
    if (this.#state !== "new") throw new Error(`queue ${this.#options.name}: started twice`);
    this.#state = "started";
    this.#work = work;
    this.#pumpSoon();
  }

  async stop(): Promise<void> {
    this.#state = "stopped";
    this.#waiting.clear();
    while (this.#line.shift() !== undefined);
    this.#readySince.clear();
    this.#settleIfIdle();
    await this.#idle.promise;
    this.#metrics.close();
  }

  get depth(): number {
    return this.#line.size;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get running(): number {
    return this.#running.size;
  }

  longestRunningMs(): number {
    // The map is in the order in which keys started.
    for (const run of this.#running.values()) return this.#since(run.startedAt);
    return 0;
  }

  #addAt(key: Key, at: number): void {
    if (this.#state === "stopped" || this.#readySince.has(key)) return;
    const run = this.#running.get(key);
    if (run) {
      run.nextAt = Math.min(at, run.nextAt ?? Infinity);
      return;
    }
    if ((this.#waiting.dueAt(key) ?? Infinity) <= at) return;
    if (at > this.#clock.monotonic()) {
      this.#waiting.add(key, at);
      return;
    }
    this.#waiting.remove(key);
    this.#enqueue(key);
  }

  #enqueue(key: Key): void {
    this.#line.push(key);
    this.#readySince.set(key, this.#clock.monotonic());
    this.#metrics.added();
    this.#pumpSoon();
  }

  /**
   * Work starts in a separate turn of the event loop: never inside the store's change that added the key, while other
   * changes of the same list are still to come, and never so often that keys which end immediately starve I/O.
   */
  #pumpSoon(): void {
    if (this.#pumping || this.#state !== "started") return;
    this.#pumping = true;
    setImmediate(() => {
      this.#pumping = false;
      while (this.#state === "started") {
        const key = this.#nextKey();
        if (key === undefined) return;
        void this.#run(key);
      }
    });
  }

  #nextKey(): Key | undefined {
    const { concurrency } = this.#options;
    const running = this.#running.size;
    if (running < concurrency) return this.#line.shift();
    return running < concurrency * maxWorkersFactor
      ? this.#line.shift((each) => !this.#runningIn.has(each))
      : undefined;
  }

  #countRunning(key: Key, change: 1 | -1): void {
    const namespace = namespaceOf(key);
    const count = (this.#runningIn.get(namespace) ?? 0) + change;
    if (count > 0) this.#runningIn.set(namespace, count);
    else this.#runningIn.delete(namespace);
  }

  async #run(key: Key): Promise<void> {
    const now = this.#clock.monotonic();
    this.#metrics.started(this.#since(this.#readySince.get(key) ?? now));
    this.#readySince.delete(key);
    const run: Running = { startedAt: now };
    this.#running.set(key, run);
    this.#countRunning(key, 1);
    const result = await this.#attempt(key);
    this.#running.delete(key);
    this.#countRunning(key, -1);
    this.#metrics.ended(this.#since(run.startedAt));
    this.#schedule(key, result);
    if (run.nextAt !== undefined) this.#addAt(key, run.nextAt);
    this.#pumpSoon();
    this.#settleIfIdle();
  }

  /** A worker that throws counts as failed, so that no error can lose a key or a worker. */
  async #attempt(key: Key): Promise<Result> {
    try {
      return await this.#work(key, this.#failures.get(key) ?? 0);
    } catch {
      return retry;
    }
  }

  #schedule(key: Key, result: Result): void {
    switch (result.kind) {
      case "done":
        this.#failures.delete(key);
        return;
      case "requeue":
        this.#failures.delete(key);
        this.addAfter(key, result.afterMs);
        return;
      case "retry":
        this.#metrics.retried();
        this.addAfter(key, this.#nextBackoff(key));
    }
  }

  #nextBackoff(key: Key): number {
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    return backoffDelay(this.#options.backoff ?? defaultBackoff, failures, this.#options.random);
  }

  #settleIfIdle(): void {
    if (this.#state === "stopped" && this.#running.size === 0) this.#idle.resolve();
  }

  #oldestReadyMs(): number {
    // The map is in the order in which keys became ready.
    for (const since of this.#readySince.values()) return this.#since(since);
    return 0;
  }

  #since(at: number): number {
    return this.#clock.monotonic() - at;
  }
}
