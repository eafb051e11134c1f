import { describe, expect, test } from "bun:test";
import { testReflector, archivingReflector, type TestReflector } from "../../testing/test-reflector.ts";
import { sleep } from "../clock.ts";
import { controller, watching, type Controller, type ControllerOptions, type Reconcile } from "./controller.ts";
import { NotLeaderError } from "../leader/leadership.ts";
import { logger } from "../telemetry/log.ts";
import { manualClock, type ManualClock } from "../manual-clock.ts";
import { metricsRegistry, type Registry } from "../telemetry/metrics.ts";
import { done, requeueAfter, retry } from "./queue.ts";
import type { KubeObject, ObjectMeta } from "../resource.ts";

const stackKind = { apiVersion: "pulumi.com/v1", kind: "Stack", namespaced: true };

let versions = 0;

function object(kind: string, path: string, metadata: ObjectMeta = {}): KubeObject {
  const [namespace = "", name = ""] = path.split("/");
  const resourceVersion = String(++versions);
  return { apiVersion: "v1", kind, metadata: { namespace, name, resourceVersion, ...metadata } };
}

function ownedBy(...names: string[]): ObjectMeta {
  const apiVersion = "pulumi.com/v1alpha1";
  return { ownerReferences: names.map((name) => ({ apiVersion, kind: "Stack", uid: "u", name })) };
}

class TestController {
  readonly clock: ManualClock = manualClock(0);
  readonly metrics: Registry = metricsRegistry();
  readonly logged: string[] = [];
  readonly stacks: TestReflector;
  readonly seen: string[] = [];
  readonly stop = new AbortController();
  readonly kill = new AbortController();
  readonly controller: Controller;
  ended = false;

  constructor(reconcile: Reconcile, options: Partial<ControllerOptions<KubeObject>> & { stacks?: TestReflector } = {}) {
    const { stacks = testReflector(), ...rest } = options;
    this.stacks = stacks;
    this.controller = controller({
      name: "stack",
      reflector: stacks,
      backoff: { baseMs: 100, factor: 2, capMs: 1000, jitter: 0 },
      clock: this.clock,
      metrics: this.metrics,
      log: logger({ write: (line) => this.logged.push(line), level: "debug" }),
      reconcile: (key, context) => {
        this.seen.push(`${key}@${this.clock.now()}`);
        return reconcile(key, context);
      },
      ...rest,
    });
  }

  async start(): Promise<this> {
    const { stop, kill } = this;
    void this.controller.run({ stop: stop.signal, kill: kill.signal }).then(() => (this.ended = true));
    this.stacks.sync();
    await this.clock.advance(0);
    return this;
  }

  async close(): Promise<void> {
    this.stop.abort();
    this.kill.abort();
    await this.clock.advance(100_000);
    expect([this.ended, this.clock.pending]).toEqual([true, 0]);
  }
}

const nothing: Reconcile = async () => done;
const hour = 3_600_000;

test("what a controller needs while it runs is stopped after its last reconcile", async () => {
  const steps: string[] = [];
  const slow = Promise.withResolvers<void>();
  const reconcile: Reconcile = async () => {
    await slow.promise;
    steps.push("reconciled");
    return done;
  };
  const fixture = new TestController(reconcile, {
    stacks: testReflector(object("Stack", "a/1")),
    whileRunning: () => {
      steps.push("started");
      return () => void steps.push("stopped");
    },
  });
  await fixture.start();
  fixture.stop.abort();
  await fixture.clock.advance(0);
  expect(steps).toEqual(["started"]);
  slow.resolve();
  await fixture.close();
  expect(steps).toEqual(["started", "reconciled", "stopped"]);
});

describe("what is reconciled", () => {
  test("every existing object at the start, and nothing before every store has synced", async () => {
    const pods = testReflector();
    const stacks = testReflector(object("Stack", "a/1"), object("Stack", "b/1"));
    const fixture = new TestController(nothing, { stacks, owns: [{ reflector: pods, ownerKind: stackKind }] });
    await fixture.start();
    await fixture.clock.advance(1000);
    expect(fixture.seen).toEqual([]);
    pods.sync();
    await fixture.clock.advance(1);
    expect(fixture.seen).toEqual(["a/1@1000", "b/1@1000"]);
    await fixture.close();
  });

  test("an object that is created, changed or deleted", async () => {
    const fixture = await new TestController(nothing).start();
    fixture.stacks.store.set(object("Stack", "a/1"));
    await fixture.clock.advance(10);
    fixture.stacks.store.set(object("Stack", "a/1"));
    await fixture.clock.advance(10);
    fixture.stacks.store.remove("a/1");
    await fixture.clock.advance(10);
    expect(fixture.seen).toEqual(["a/1@0", "a/1@10", "a/1@20"]);
    await fixture.close();
  });

  test("an object whose version is used again for other content, after a restore of etcd", async () => {
    const fixture = await new TestController(nothing).start();
    const stack = object("Stack", "a/1");
    fixture.stacks.store.set(stack);
    await fixture.clock.advance(10);
    const restored = { ...stack, metadata: { ...stack.metadata, labels: { color: "blue" } } };
    await fixture.stacks.store.replace(new Map([["a/1", restored]]));
    await fixture.clock.advance(10);
    expect(fixture.seen).toEqual(["a/1@0", "a/1@10"]);
    await fixture.close();
  });

  test("not an unchanged object in a new list", async () => {
    const fixture = await new TestController(nothing).start();
    const stack = object("Stack", "a/1");
    fixture.stacks.store.set(stack);
    await fixture.clock.advance(10);
    await fixture.stacks.store.replace(new Map([["a/1", structuredClone(stack)]]));
    await fixture.clock.advance(10);
    expect(fixture.seen).toEqual(["a/1@0"]);
    await fixture.close();
  });

  test("not an archived object at the start, unless it has been at rest for long enough", async () => {
    const stacks = archivingReflector(({ metadata }) => metadata.generation);
    stacks.store.set(object("Stack", "a/active"));
    for (const time of [-10, 50]) stacks.store.set(object("Stack", `a/${time}`, { generation: time }));
    const fixture = await new TestController(nothing, { stacks }).start();
    expect(fixture.seen).toEqual(["a/active@0", "a/-10@0"]);
    await fixture.clock.advance(100);
    expect(fixture.seen.slice(2)).toEqual(["a/50@50"]);
    await fixture.close();
  });

  test("an archived object when its rest ends, even if that is much later and its last reconcile was to be repeated", async () => {
    const stacks = archivingReflector(({ metadata }) => metadata.generation);
    stacks.store.set(object("Stack", "a/kept", { generation: 600_050 }));
    const fixture = await new TestController(async () => requeueAfter(600_000), { stacks }).start();
    stacks.store.set(object("Stack", "a/archived", { generation: 600_070 }));
    await fixture.clock.advance(600_000);
    expect(fixture.seen).toEqual(["a/archived@0"]);
    await fixture.clock.advance(100);
    expect(fixture.seen.slice(1)).toEqual(["a/kept@600050", "a/archived@600070"]);
    await fixture.close();
  });

  for (const hours of [19, -19]) {
    test(`every object after the wall clock was set by ${hours} hours, because what waits was planned by the old time`, async () => {
      const reconcile: Reconcile = async (key) => (key === "a/waits" ? requeueAfter(hour * 20) : done);
      const stacks = testReflector(object("Stack", "a/waits"), object("Stack", "a/rests"));
      const fixture = await new TestController(reconcile, { stacks }).start();
      await fixture.clock.advance(hour);
      expect(fixture.seen).toEqual(["a/waits@0", "a/rests@0"]);
      fixture.clock.stepWallClock(hours * hour);
      await fixture.clock.advance(60_000);
      const at = (hours + 1) * hour + 60_000;
      expect(fixture.seen.slice(2)).toEqual([`a/waits@${at}`, `a/rests@${at}`]);
      await fixture.clock.advance(hour);
      expect(fixture.seen).toHaveLength(4);
      await fixture.close();
    });
  }

  test("nothing while the wall clock only drifts", async () => {
    const fixture = await new TestController(nothing, { stacks: testReflector(object("Stack", "a/1")) }).start();
    fixture.clock.stepWallClock(5000);
    await fixture.clock.advance(hour);
    expect(fixture.seen).toEqual(["a/1@0"]);
    await fixture.close();
  });

  test("an archived object whose rest has ended only as often as its reconcile requests it", async () => {
    const stacks = archivingReflector(({ metadata }) => metadata.generation);
    stacks.store.set(object("Stack", "a/overdue", { generation: -10 }));
    const fixture = await new TestController(async () => requeueAfter(300_000), { stacks }).start();
    await fixture.clock.advance(300_000);
    expect(fixture.seen).toEqual(["a/overdue@0", "a/overdue@300000"]);
    await fixture.close();
  });

  test("only changes that pass the predicate", async () => {
    const predicate: ControllerOptions<KubeObject>["predicate"] = ({ before, after }) =>
      before?.metadata.generation !== after?.metadata.generation;
    const fixture = await new TestController(nothing, { predicate }).start();
    fixture.stacks.store.set(object("Stack", "a/1", { generation: 1 }));
    await fixture.clock.advance(10);
    fixture.stacks.store.set(object("Stack", "a/1", { generation: 1 }));
    await fixture.clock.advance(10);
    fixture.stacks.store.set(object("Stack", "a/1", { generation: 2 }));
    await fixture.clock.advance(10);
    expect(fixture.seen).toEqual(["a/1@0", "a/1@20"]);
    await fixture.close();
  });

  test("the previous and current owners of an object, in any version of their kind", async () => {
    const pods = testReflector(object("Pod", "a/orphan", ownedBy("gone")));
    pods.sync();
    const fixture = await new TestController(nothing, { owns: [{ reflector: pods, ownerKind: stackKind }] }).start();
    expect(fixture.seen).toEqual(["a/gone@0"]);
    pods.store.set(object("Pod", "a/p", ownedBy("one", "two")));
    await fixture.clock.advance(10);
    pods.store.set(object("Pod", "a/p", ownedBy("two", "three")));
    await fixture.clock.advance(10);
    pods.store.set(
      object("Pod", "a/q", { ownerReferences: [{ apiVersion: "v1", kind: "Stack", name: "x", uid: "u" }] }),
    );
    await fixture.clock.advance(10);
    expect(fixture.seen.slice(1)).toEqual(["a/one@0", "a/two@0", "a/one@10", "a/two@10", "a/three@10"]);
    await fixture.close();
  });

  test("the keys that a watch maps to; a map function that throws is logged and affects nothing else", async () => {
    const secrets = testReflector();
    secrets.sync();
    const watch = watching({
      reflector: secrets,
      *map({ key }) {
        if (key.endsWith("bad")) throw new Error("cannot map");
        yield `${key}-user`;
      },
    });
    const fixture = await new TestController(nothing, { watches: [watch] }).start();
    for (const name of ["bad", "good"]) secrets.store.set(object("Secret", `a/${name}`));
    await fixture.clock.advance(10);
    expect(fixture.seen).toEqual(["a/good-user@0"]);
    expect(fixture.logged.join("")).toContain("cannot map");
    await fixture.close();
  });

  test("keys that are enqueued explicitly while it runs", async () => {
    const fixture = new TestController(nothing);
    fixture.controller.enqueue("a/early");
    await fixture.start();
    fixture.controller.enqueue("a/1");
    await fixture.clock.advance(10);
    expect(fixture.seen).toEqual(["a/1@0"]);
    await fixture.close();
  });
});

describe("what a reconcile returns", () => {
  test("done, requeue, retry and an exception are scheduled and counted correctly", async () => {
    const failed: number[] = [];
    const reconcile: Reconcile = async (_key, { failures }) => {
      failed.push(failures);
      switch (fixture.seen.length) {
        case 1:
          return requeueAfter(50);
        case 2:
          return retry;
        case 3:
          throw new Error("no luck");
        default:
          return done;
      }
    };
    const fixture = new TestController(reconcile, { stacks: testReflector(object("Stack", "a/1")) });
    await fixture.start();
    await fixture.clock.advance(10_000);
    expect(fixture.seen).toEqual(["a/1@0", "a/1@50", "a/1@150", "a/1@350"]);
    expect(failed).toEqual([0, 0, 1, 2]);
    const text = fixture.metrics.expose();
    for (const result of ["success", "requeue_after", "requeue", "error"]) {
      expect(text).toContain(`controller_runtime_reconcile_total{controller="stack",result="${result}"} 1\n`);
    }
    expect(text).toContain('controller_runtime_reconcile_errors_total{controller="stack"} 1\n');
    expect(text).toContain('controller_runtime_reconcile_time_seconds_count{controller="stack"} 4\n');
    const failure = fixture.logged.find((line) => line.includes("reconcile failed")) ?? "";
    expect(JSON.parse(failure)).toMatchObject({ level: "error", namespace: "a", name: "1", failures: 2 });
    expect(failure).toContain("no luck");
    await fixture.close();
  });

  test("the lines of one reconcile have its object and its ID", async () => {
    const reconcile: Reconcile = async (_, { log }) => {
      log.info("one");
      log.info("two");
      return done;
    };
    const logKeys = (name: string, found: KubeObject | undefined) => ({ stack: name, run: found?.metadata.uid });
    const stacks = testReflector(object("Stack", "a/1", { uid: "u1" }));
    const fixture = await new TestController(reconcile, { stacks, logKeys }).start();
    fixture.controller.enqueue("a/1");
    await fixture.clock.advance(0);
    const lines = fixture.logged.map((line) => JSON.parse(line) as Record<string, unknown>);
    const [first, second, third] = lines.filter(({ msg }) => msg === "one" || msg === "two");
    expect(first).toMatchObject({ controller: "stack", namespace: "a", name: "1", stack: "1", run: "u1" });
    expect(first?.["reconcileID"]).toMatch(/^[0-9a-f]{10}$/);
    expect(second?.["reconcileID"]).toBe(first?.["reconcileID"]);
    expect(third?.["reconcileID"]).not.toBe(first?.["reconcileID"]);
    await fixture.close();
  });

  test("a write that is rejected without leadership is not logged as an error", async () => {
    const stacks = testReflector(object("Stack", "a/1"));
    const fixture = new TestController(() => Promise.reject(new NotLeaderError("apply")), { stacks });
    await fixture.start();
    expect(fixture.logged.join("")).toContain("reconcile aborted");
    expect(fixture.logged.join("")).not.toContain('"level":"error"');
    await fixture.close();
  });
});

describe("deadlines and workers", () => {
  test("a reconcile that misses its deadline is logged repeatedly, and its signal aborts", async () => {
    const aborted: number[] = [];
    const reconcile: Reconcile = async (_key, { signal }) => {
      signal.addEventListener("abort", () => aborted.push(fixture.clock.now()));
      await sleep(fixture.clock, 2500);
      return done;
    };
    const stacks = testReflector(object("Stack", "a/1"));
    const fixture = new TestController(reconcile, { stacks, deadlineMs: 1000 });
    await fixture.start();
    await fixture.clock.advance(1500);
    expect(fixture.controller.longestRunningMs()).toBe(1500);
    await fixture.clock.advance(8500);
    expect(aborted).toEqual([1000]);
    expect(fixture.logged.filter((line) => line.includes("longer than its deadline")).length).toBe(2);
    expect(fixture.metrics.expose()).toContain('controller_runtime_reconcile_timeouts_total{controller="stack"} 2\n');
    expect(fixture.controller.longestRunningMs()).toBe(0);
    await fixture.close();
  });

  test("workers are counted and bounded", async () => {
    const reconcile: Reconcile = async () => {
      await sleep(fixture.clock, 100);
      return done;
    };
    const stacks = testReflector(...["a/1", "a/2", "a/3"].map((path) => object("Stack", path)));
    const fixture = new TestController(reconcile, { stacks, concurrency: 2 });
    await fixture.start();
    const text = fixture.metrics.expose();
    expect(text).toContain('controller_runtime_active_workers{controller="stack"} 2\n');
    expect(text).toContain('controller_runtime_max_concurrent_reconciles{controller="stack"} 2\n');
    expect(text).toContain('workqueue_depth{name="stack",controller="stack"} 1\n');
    await fixture.close();
  });
});

describe("stopping", () => {
  test("a stop lets the running reconcile finish and starts no other; a new run reconciles everything", async () => {
    const reconcile: Reconcile = async (_key, { signal }) => {
      await sleep(fixture.clock, 500, signal);
      return signal.aborted ? retry : done;
    };
    const stacks = testReflector(object("Stack", "a/1"), object("Stack", "a/2"));
    const fixture = new TestController(reconcile, { stacks, concurrency: 1 });
    await fixture.start();
    await fixture.clock.advance(100);
    fixture.stop.abort();
    await fixture.clock.advance(300);
    expect(fixture.ended).toBe(false);
    await fixture.clock.advance(5000);
    expect([fixture.ended, fixture.seen]).toEqual([true, ["a/1@0"]]);
    const second = new AbortController();
    const run = fixture.controller.run({ stop: second.signal, kill: second.signal });
    await fixture.clock.advance(1000);
    expect(fixture.seen.slice(1)).toEqual(["a/1@5400", "a/2@5900"]);
    second.abort();
    await Promise.all([run, fixture.clock.advance(1000)]);
  });

  test("a kill aborts the running reconcile", async () => {
    const reconcile: Reconcile = async (_key, { signal }) => {
      await sleep(fixture.clock, 60_000, signal);
      signal.throwIfAborted();
      return done;
    };
    const fixture = new TestController(reconcile, {
      stacks: testReflector(object("Stack", "a/1")),
      deadlineMs: 100_000,
    });
    await fixture.start();
    await fixture.clock.advance(100);
    fixture.stop.abort();
    fixture.kill.abort(new Error("time is up"));
    await fixture.clock.advance(10);
    expect(fixture.ended).toBe(true);
    expect(fixture.logged.join("")).toContain("reconcile aborted");
  });

  test("a stop before the stores have synced returns", async () => {
    const fixture = new TestController(nothing);
    const run = fixture.controller.run({ stop: fixture.stop.signal, kill: fixture.kill.signal });
    fixture.stop.abort();
    await run;
    expect(fixture.seen).toEqual([]);
  });
});
