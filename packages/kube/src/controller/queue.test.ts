import { describe, expect, test } from "bun:test";
import { sleep } from "../clock.ts";
import { manualClock, type ManualClock } from "../manual-clock.ts";
import { metricsRegistry } from "../telemetry/metrics.ts";
import {
  requeueAfter,
  requeueAt,
  done,
  retry,
  workQueue,
  type QueueOptions,
  type Result,
  type Work,
  type WorkQueue,
} from "./queue.ts";
import { testSeed } from "../../testing/seed.ts";
import { seededRandom } from "../../testing/seeded-random.ts";

const backoff = { baseMs: 100, factor: 2, capMs: 1000, jitter: 0 };

interface Bench {
  readonly clock: ManualClock;
  readonly queue: WorkQueue;
  /** `key@milliseconds since the start` of every run. */
  readonly started: string[];
  readonly work: (work?: Work) => void;
}

function bench(options: Partial<QueueOptions> = {}): Bench {
  const clock = manualClock(0);
  const queue = workQueue({ name: "q", concurrency: 1, backoff, clock, ...options });
  const started: string[] = [];
  const work = (work: Work = () => Promise.resolve(done)): void =>
    queue.start((key, failures) => {
      started.push(`${key}@${clock.now()}`);
      return work(key, failures);
    });
  return { clock, queue, started, work };
}

/** Work that takes `ms`. */
function workFor(clock: ManualClock, ms: number, result: Result = done): Work {
  return async () => {
    await sleep(clock, ms);
    return result;
  };
}

test("requeueAt is relative to the start of the reconcile, and a past time means immediately", () => {
  expect(requeueAt(1500, 1000)).toEqual(requeueAfter(500));
  expect(requeueAt(900, 1000)).toEqual(requeueAfter(0));
  expect(requeueAt(undefined, 1000)).toEqual(done);
});

describe("adding", () => {
  test("a key added many times before its turn runs once", async () => {
    const { clock, queue, started, work } = bench();
    for (let i = 0; i < 5; i++) queue.add("a/1");
    expect(queue.depth).toBe(1);
    work();
    await clock.advance(10);
    expect(started).toEqual(["a/1@0"]);
  });

  test("nothing runs before the start or inside add", async () => {
    const { clock, queue, started, work } = bench();
    queue.add("a/1");
    await clock.advance(5);
    expect(started).toEqual([]);
    work();
    queue.add("a/2");
    expect(started).toEqual([]);
    await clock.advance(1);
    expect(started).toEqual(["a/1@5", "a/2@5"]);
  });

  test("a key added several times while it runs, runs once more afterwards", async () => {
    const { clock, queue, started, work } = bench({ concurrency: 5 });
    work(workFor(clock, 50));
    queue.add("a/1");
    await clock.advance(10);
    for (let i = 0; i < 3; i++) queue.add("a/1");
    expect([queue.depth, queue.running]).toEqual([0, 1]);
    await clock.advance(200);
    expect(started).toEqual(["a/1@0", "a/1@50"]);
  });
});

describe("delayed adding", () => {
  test("the earlier time wins, whichever is added first", async () => {
    const { clock, queue, started, work } = bench();
    work();
    queue.addAfter("a/later-first", 100);
    queue.addAfter("a/later-first", 40);
    queue.addAfter("a/earlier-first", 40);
    queue.addAfter("a/earlier-first", 100);
    queue.addAfter("a/now", 100);
    queue.add("a/now");
    expect(queue.waiting).toBe(2);
    await clock.advance(500);
    expect(started).toEqual(["a/now@0", "a/later-first@40", "a/earlier-first@40"]);
    expect(clock.pending).toBe(0);
  });

  test("a time requested while the key runs is kept, and the earlier one wins", async () => {
    const { clock, queue, started, work } = bench();
    work(async (_key) => {
      await sleep(clock, 10);
      return started.length === 1 ? requeueAfter(500) : done;
    });
    queue.add("a/1");
    await clock.advance(5);
    queue.addAfter("a/1", 100);
    queue.addAfter("a/1", 300);
    await clock.advance(1000);
    expect(started).toEqual(["a/1@0", "a/1@105"]);
  });

  for (const [direction, step] of [
    ["forward", 3_600_000],
    ["back", -3_600_000],
  ] as const) {
    test(`setting the wall clock ${direction} does not move a key`, async () => {
      const { clock, queue, work } = bench();
      const runs: string[] = [];
      const start = clock.monotonic();
      work(async (key) => {
        runs.push(`${key}@${clock.monotonic() - start}`);
        return done;
      });
      queue.addAfter("a/added", 60_000);
      queue.addAfter("a/waiting", 60_000);
      await clock.advance(10);
      clock.stepWallClock(step);
      queue.add("a/added");
      queue.addAfter("a/later", 100);
      await clock.advance(100_000);
      expect(runs).toEqual(["a/added@10", "a/later@110", "a/waiting@60000"]);
    });
  }

  test("durations do not use the wall clock", async () => {
    const metrics = metricsRegistry();
    const { clock, queue, work } = bench({ metrics });
    work(workFor(clock, 2000));
    queue.add("a/1");
    await clock.advance(1000);
    clock.stepWallClock(86_400_000);
    expect(queue.longestRunningMs()).toBe(1000);
    await clock.advance(2000);
    expect(metrics.expose()).toContain('workqueue_work_duration_seconds_sum{name="q",controller="q"} 2\n');
  });

  test("a delay beyond the longest timer does not run immediately", async () => {
    const { clock, queue, started, work } = bench();
    work();
    queue.addAfter("a/1", Infinity);
    await clock.advance(24 * 3600 * 1000);
    expect(started).toEqual([]);
  });
});

describe("results", () => {
  test("a requeued key runs after its delay and does not count as a failure", async () => {
    const { clock, queue, started, work } = bench();
    const seen: number[] = [];
    work((_key, failures) => {
      seen.push(failures);
      return Promise.resolve(started.length < 3 ? requeueAfter(70) : done);
    });
    queue.add("a/1");
    await clock.advance(1000);
    expect(started).toEqual(["a/1@0", "a/1@70", "a/1@140"]);
    expect(seen).toEqual([0, 0, 0]);
  });

  test("retries back off up to the cap; success resets the backoff", async () => {
    const { clock, queue, started, work } = bench();
    const seen: number[] = [];
    work((_key, failures) => {
      seen.push(failures);
      return Promise.resolve(started.length === 6 ? done : retry);
    });
    queue.add("a/1");
    await clock.advance(2500);
    expect(started).toEqual(["a/1@0", "a/1@100", "a/1@300", "a/1@700", "a/1@1500", "a/1@2500"]);
    queue.add("a/1");
    await clock.advance(100);
    expect(started.slice(6)).toEqual(["a/1@2500", "a/1@2600"]);
    expect(seen).toEqual([0, 1, 2, 3, 4, 5, 0, 1]);
  });

  test("a worker that throws, even synchronously, is a failure: neither the key nor the worker is lost", async () => {
    const { clock, queue, started, work } = bench();
    work((key) => {
      if (key === "a/1" && started.length === 1) throw new Error("synchronous");
      return started.length === 2 ? Promise.reject(new Error("later")) : Promise.resolve(done);
    });
    queue.add("a/1");
    await clock.advance(1000);
    expect(started).toEqual(["a/1@0", "a/1@100", "a/1@300"]);
    expect(queue.running).toBe(0);
  });

  test("a change during the backoff runs immediately", async () => {
    const { clock, queue, started, work } = bench();
    work(() => Promise.resolve(started.length < 4 ? retry : done));
    queue.add("a/1");
    await clock.advance(310);
    queue.add("a/1");
    await clock.advance(1);
    expect(started).toEqual(["a/1@0", "a/1@100", "a/1@300", "a/1@310"]);
  });

  test("a key that is always due does not starve the event loop", async () => {
    const { clock, queue, started, work } = bench();
    work(() => Promise.resolve(requeueAfter(0)));
    queue.add("a/1");
    for (let i = 0; i < 20; i++) await clock.advance(0);
    expect(started.length).toBeGreaterThan(2);
    await queue.stop();
  });
});

describe("workers", () => {
  test("the keys of one namespace are limited to the concurrency, and namespaces take turns", async () => {
    const { clock, queue, started, work } = bench({ concurrency: 2 });
    work(workFor(clock, 10));
    for (const key of ["a/1", "a/2", "a/3", "b/1"]) queue.add(key);
    await clock.advance(0);
    expect([queue.running, queue.depth]).toEqual([2, 2]);
    await clock.advance(100);
    expect(started).toEqual(["a/1@0", "b/1@0", "a/2@10", "a/3@10"]);
  });

  test("slow keys of one namespace do not delay another", async () => {
    const { clock, queue, started, work } = bench({ concurrency: 2 });
    work((key) => workFor(clock, key.startsWith("slow/") ? 1000 : 10)(key, 0));
    for (let number = 1; number <= 5; number++) queue.add(`slow/${number}`);
    await clock.advance(5);
    for (const key of ["a/1", "a/2", "b/1"]) queue.add(key);
    await clock.advance(100);
    expect(started).toEqual(["slow/1@0", "slow/2@0", "a/1@5", "b/1@5", "a/2@15"]);
    expect([queue.running, queue.depth]).toEqual([2, 3]);
  });

  test("the number of workers is bounded even with a thousand namespaces", async () => {
    const { clock, queue, work } = bench({ concurrency: 2 });
    work(workFor(clock, 1000));
    for (let number = 1; number <= 1000; number++) queue.add(`namespace-${number}/1`);
    await clock.advance(5);
    expect(queue.running).toBe(8);
  });

  test("the longest running key is known", async () => {
    const { clock, queue, work } = bench({ concurrency: 2 });
    work((key) => workFor(clock, key === "a/1" ? 1000 : 10)(key, 0));
    queue.add("a/1");
    await clock.advance(100);
    queue.add("a/2");
    await clock.advance(5);
    expect(queue.longestRunningMs()).toBe(105);
    await clock.advance(2000);
    expect(queue.longestRunningMs()).toBe(0);
  });
});

describe("stopping", () => {
  test("waits for running keys, starts nothing more and leaves no timer", async () => {
    const { clock, queue, started, work } = bench();
    work(workFor(clock, 50, requeueAfter(1)));
    for (const key of ["a/1", "a/2"]) queue.add(key);
    queue.addAfter("a/3", 10);
    await clock.advance(5);
    let stopped = false;
    const stop = queue.stop().then(() => (stopped = true));
    queue.add("a/4");
    await clock.advance(40);
    expect(stopped).toBe(false);
    await clock.advance(500);
    await stop;
    expect(started).toEqual(["a/1@0"]);
    expect([queue.depth, queue.waiting, queue.running, clock.pending]).toEqual([0, 0, 0, 0]);
  });

  test("an idle queue stops immediately, and can be stopped twice", async () => {
    const { queue } = bench();
    await queue.stop();
    await queue.stop();
  });
});

test("the metrics have client-go's names, and show the age of the oldest key", async () => {
  const metrics = metricsRegistry();
  const { clock, queue, work } = bench({ metrics });
  work((key, failures) => workFor(clock, 2000, key === "a/1" && failures === 0 ? retry : done)(key, failures));
  for (const key of ["a/1", "a/2", "a/3"]) queue.add(key);
  await clock.advance(1000);
  const own = '{name="q",controller="q"}';
  expect(metrics.expose()).toContain(`workqueue_depth${own} 2\n`);
  expect(metrics.expose()).toContain(`workqueue_oldest_age_seconds${own} 1\n`);
  expect(metrics.expose()).toContain(`workqueue_longest_running_processor_seconds${own} 1\n`);
  expect(metrics.expose()).toContain(`workqueue_unfinished_work_seconds${own} 1\n`);
  await clock.advance(20_000);
  const text = metrics.expose();
  expect(text).toContain(`workqueue_adds_total${own} 4\n`);
  expect(text).toContain(`workqueue_retries_total${own} 1\n`);
  expect(text).toContain(`workqueue_queue_duration_seconds_count${own} 4\n`);
  expect(text).toContain(`workqueue_work_duration_seconds_sum${own} 8\n`);
  await queue.stop();
});

/** Random adds, times, durations and results, checked against the invariants of the queue. */
class Trial {
  readonly clock = manualClock(0);
  readonly concurrency: number;
  readonly queue: WorkQueue;
  readonly #random;
  /** With a worker for every key and no failures, each run starts exactly when it is due. */
  readonly #punctual: boolean;
  readonly #endedAt = new Map<string, number>();
  readonly #running = new Set<string>();
  /** The earliest time requested since the key's last start. */
  readonly #due = new Map<string, number>();
  readonly #requested = new Map<string, number>();
  readonly #started = new Map<string, number>();
  #order = 0;
  starts = 0;
  isEnding = false;
  readonly violations: string[] = [];

  constructor(seed: number) {
    this.#random = seededRandom(seed);
    this.#punctual = seed % 4 === 0;
    this.concurrency = this.#punctual ? 18 : 1 + this.#random.below(4);
    const { clock, concurrency } = this;
    this.queue = workQueue({ name: "q", concurrency, clock, backoff, random: () => this.#random.next() });
    this.queue.start((key) => this.#work(key));
  }

  async step(): Promise<void> {
    const key = `${this.#random.pick(["a", "b", "c"])}/${this.#random.below(6)}`;
    const chance = this.#random.next();
    if (chance < 0.4) this.#add(key, 0);
    else if (chance < 0.7) this.#add(key, this.#random.below(200));
    else await this.clock.advance(this.#random.below(40));
  }

  #add(key: string, ms: number): void {
    this.#request(key, ms);
    if (ms === 0) this.queue.add(key);
    else this.queue.addAfter(key, ms);
  }

  #request(key: string, ms: number): void {
    this.#requested.set(key, ++this.#order);
    this.#due.set(key, Math.min(this.clock.now() + ms, this.#due.get(key) ?? Infinity));
  }

  async #work(key: string): Promise<Result> {
    // Recorded, not thrown: the queue would treat an exception as a failed run.
    if (this.#running.has(key)) this.violations.push(`${key} ran twice concurrently`);
    const hasOthers = [...this.#running].some((other) => other[0] === key[0]);
    this.#running.add(key);
    if (this.#running.size > this.concurrency && hasOthers)
      this.violations.push(`${key} ran although too many were running`);
    const due = Math.max(this.#due.get(key) ?? Infinity, this.#endedAt.get(key) ?? 0);
    if (this.clock.now() < due) this.violations.push(`${key} ran too early or without a request`);
    if (this.#punctual && this.clock.now() > due) this.violations.push(`${key} ran too late`);
    this.#due.delete(key);
    this.#started.set(key, ++this.#order);
    this.starts++;
    if (this.#random.next() < 0.7) await sleep(this.clock, this.#random.below(60));
    this.#running.delete(key);
    this.#endedAt.set(key, this.clock.now());
    return this.#result(key);
  }

  #result(key: string): Result {
    const chance = this.isEnding ? 1 : (this.#punctual ? 0.3 : 0) + this.#random.next();
    if (chance < 0.15) throw new Error("worker error", { cause: this.#request(key, 0) });
    if (chance < 0.3) this.#request(key, 0);
    if (chance < 0.3) return retry;
    if (chance >= 0.5) return done;
    const ms = this.#random.below(100);
    this.#request(key, ms);
    return requeueAfter(ms);
  }

  /** Every request was followed by a run that started after it. */
  expectNothingLost(): void {
    for (const [key, order] of this.#requested) expect(this.#started.get(key) ?? 0).toBeGreaterThan(order);
    expect([this.queue.depth, this.queue.waiting, this.queue.running, this.clock.pending]).toEqual([0, 0, 0, 0]);
  }
}

const firstSeed = testSeed("queue");

for (let seed = firstSeed; seed < firstSeed + 40; seed++) {
  test(`a key never runs concurrently, at the wrong time or not at all (TEST_SEED=${seed})`, async () => {
    const trial = new Trial(seed);
    for (let i = 0; i < 400; i++) await trial.step();
    trial.isEnding = true;
    for (let i = 0; i < 100; i++) await trial.clock.advance(100);
    trial.expectNothingLost();
    expect(trial.violations).toEqual([]);
    expect(trial.starts).toBeGreaterThan(100);
  });
}
