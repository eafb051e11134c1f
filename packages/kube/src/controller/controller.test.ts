import { describe, expect, test } from "bun:test";
import { testReflector, type TestReflector } from "../../testing/test-reflector.ts";
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

class Setting {
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

describe("what is looked at", () => {
  test("everything present at the start, and nothing before every store has synced", async () => {
    const pods = testReflector();
    const stacks = testReflector(object("Stack", "a/1"), object("Stack", "b/1"));
    const setting = new Setting(nothing, { stacks, owns: [{ reflector: pods, ownerKind: stackKind }] });
    await setting.start();
    await setting.clock.advance(1000);
    expect(setting.seen).toEqual([]);
    pods.sync();
    await setting.clock.advance(1);
    expect(setting.seen).toEqual(["a/1@1000", "b/1@1000"]);
    await setting.close();
  });

  test("an object that is created, changed or deleted", async () => {
    const setting = await new Setting(nothing).start();
    setting.stacks.store.set(object("Stack", "a/1"));
    await setting.clock.advance(10);
    setting.stacks.store.set(object("Stack", "a/1"));
    await setting.clock.advance(10);
    setting.stacks.store.remove("a/1");
    await setting.clock.advance(10);
    expect(setting.seen).toEqual(["a/1@0", "a/1@10", "a/1@20"]);
    await setting.close();
  });

  test("not a list that was read again and holds nothing new", async () => {
    const setting = await new Setting(nothing).start();
    const stack = object("Stack", "a/1");
    setting.stacks.store.set(stack);
    await setting.clock.advance(10);
    setting.stacks.store.replace([structuredClone(stack)], () => true);
    await setting.clock.advance(10);
    expect(setting.seen).toEqual(["a/1@0"]);
    await setting.close();
  });

  test("only the changes the predicate lets through", async () => {
    const predicate: ControllerOptions<KubeObject>["predicate"] = ({ before, after }) =>
      before?.metadata.generation !== after?.metadata.generation;
    const setting = await new Setting(nothing, { predicate }).start();
    setting.stacks.store.set(object("Stack", "a/1", { generation: 1 }));
    await setting.clock.advance(10);
    setting.stacks.store.set(object("Stack", "a/1", { generation: 1 }));
    await setting.clock.advance(10);
    setting.stacks.store.set(object("Stack", "a/1", { generation: 2 }));
    await setting.clock.advance(10);
    expect(setting.seen).toEqual(["a/1@0", "a/1@20"]);
    await setting.close();
  });

  test("the owners of an object, those it had and those it has, in any version of their kind", async () => {
    const pods = testReflector(object("Pod", "a/orphan", ownedBy("gone")));
    pods.sync();
    const setting = await new Setting(nothing, { owns: [{ reflector: pods, ownerKind: stackKind }] }).start();
    expect(setting.seen).toEqual(["a/gone@0"]);
    pods.store.set(object("Pod", "a/p", ownedBy("one", "two")));
    await setting.clock.advance(10);
    pods.store.set(object("Pod", "a/p", ownedBy("two", "three")));
    await setting.clock.advance(10);
    pods.store.set(
      object("Pod", "a/q", { ownerReferences: [{ apiVersion: "v1", kind: "Stack", name: "x", uid: "u" }] }),
    );
    await setting.clock.advance(10);
    expect(setting.seen.slice(1)).toEqual(["a/one@0", "a/two@0", "a/one@10", "a/two@10", "a/three@10"]);
    await setting.close();
  });

  test("what a watch maps to; a map that throws is reported and costs nothing else", async () => {
    const secrets = testReflector();
    secrets.sync();
    const watch = watching({
      reflector: secrets,
      *map({ key }) {
        if (key.endsWith("bad")) throw new Error("cannot map");
        yield `${key}-user`;
      },
    });
    const setting = await new Setting(nothing, { watches: [watch] }).start();
    for (const name of ["bad", "good"]) secrets.store.set(object("Secret", `a/${name}`));
    await setting.clock.advance(10);
    expect(setting.seen).toEqual(["a/good-user@0"]);
    expect(setting.logged.join("")).toContain("cannot map");
    await setting.close();
  });

  test("what is enqueued by hand, while it runs", async () => {
    const setting = new Setting(nothing);
    setting.controller.enqueue("a/early");
    await setting.start();
    setting.controller.enqueue("a/1");
    await setting.clock.advance(10);
    expect(setting.seen).toEqual(["a/1@0"]);
    await setting.close();
  });
});

describe("what a reconcile returns", () => {
  test("done, again, retry and an exception lead where they should, and are counted", async () => {
    const failed: number[] = [];
    const reconcile: Reconcile = async (_key, { failures }) => {
      failed.push(failures);
      switch (setting.seen.length) {
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
    const setting = new Setting(reconcile, { stacks: testReflector(object("Stack", "a/1")) });
    await setting.start();
    await setting.clock.advance(10_000);
    expect(setting.seen).toEqual(["a/1@0", "a/1@50", "a/1@150", "a/1@350"]);
    expect(failed).toEqual([0, 0, 1, 2]);
    const text = setting.metrics.expose();
    for (const result of ["success", "requeue_after", "requeue", "error"]) {
      expect(text).toContain(`controller_runtime_reconcile_total{controller="stack",result="${result}"} 1\n`);
    }
    expect(text).toContain('controller_runtime_reconcile_errors_total{controller="stack"} 1\n');
    expect(text).toContain('controller_runtime_reconcile_time_seconds_count{controller="stack"} 4\n');
    const failure = setting.logged.find((line) => line.includes("reconcile failed")) ?? "";
    expect(JSON.parse(failure)).toMatchObject({ level: "error", namespace: "a", name: "1", failures: 2 });
    expect(failure).toContain("no luck");
    await setting.close();
  });

  test("a write refused for want of leadership is no error in the log", async () => {
    const stacks = testReflector(object("Stack", "a/1"));
    const setting = new Setting(() => Promise.reject(new NotLeaderError("apply")), { stacks });
    await setting.start();
    expect(setting.logged.join("")).toContain("reconcile cut short");
    expect(setting.logged.join("")).not.toContain('"level":"error"');
    await setting.close();
  });
});

describe("time", () => {
  test("one past its deadline is reported, again and again, and its signal aborts", async () => {
    const aborted: number[] = [];
    const reconcile: Reconcile = async (_key, { signal }) => {
      signal.addEventListener("abort", () => aborted.push(setting.clock.now()));
      await sleep(setting.clock, 2500);
      return done;
    };
    const stacks = testReflector(object("Stack", "a/1"));
    const setting = new Setting(reconcile, { stacks, deadlineMs: 1000 });
    await setting.start();
    await setting.clock.advance(1500);
    expect(setting.controller.longestRunningMs()).toBe(1500);
    await setting.clock.advance(8500);
    expect(aborted).toEqual([1000]);
    expect(setting.logged.filter((line) => line.includes("longer than its deadline")).length).toBe(2);
    expect(setting.metrics.expose()).toContain('controller_runtime_reconcile_timeouts_total{controller="stack"} 2\n');
    expect(setting.controller.longestRunningMs()).toBe(0);
    await setting.close();
  });

  test("workers are counted and bounded", async () => {
    const reconcile: Reconcile = async () => {
      await sleep(setting.clock, 100);
      return done;
    };
    const stacks = testReflector(...["a/1", "a/2", "a/3"].map((path) => object("Stack", path)));
    const setting = new Setting(reconcile, { stacks, concurrency: 2 });
    await setting.start();
    const text = setting.metrics.expose();
    expect(text).toContain('controller_runtime_active_workers{controller="stack"} 2\n');
    expect(text).toContain('controller_runtime_max_concurrent_reconciles{controller="stack"} 2\n');
    expect(text).toContain('workqueue_depth{name="stack",controller="stack"} 1\n');
    await setting.close();
  });
});

describe("stopping", () => {
  test("a stop lets the reconcile end, takes no other, and a new run looks at everything again", async () => {
    const reconcile: Reconcile = async (_key, { signal }) => {
      await sleep(setting.clock, 500, signal);
      return signal.aborted ? retry : done;
    };
    const stacks = testReflector(object("Stack", "a/1"), object("Stack", "a/2"));
    const setting = new Setting(reconcile, { stacks, concurrency: 1 });
    await setting.start();
    await setting.clock.advance(100);
    setting.stop.abort();
    await setting.clock.advance(300);
    expect(setting.ended).toBe(false);
    await setting.clock.advance(5000);
    expect([setting.ended, setting.seen]).toEqual([true, ["a/1@0"]]);
    const second = new AbortController();
    const run = setting.controller.run({ stop: second.signal, kill: second.signal });
    await setting.clock.advance(1000);
    expect(setting.seen.slice(1)).toEqual(["a/1@5400", "a/2@5900"]);
    second.abort();
    await Promise.all([run, setting.clock.advance(1000)]);
  });

  test("a kill aborts the reconcile", async () => {
    const reconcile: Reconcile = async (_key, { signal }) => {
      await sleep(setting.clock, 60_000, signal);
      signal.throwIfAborted();
      return done;
    };
    const setting = new Setting(reconcile, { stacks: testReflector(object("Stack", "a/1")), deadlineMs: 100_000 });
    await setting.start();
    await setting.clock.advance(100);
    setting.stop.abort();
    setting.kill.abort(new Error("time is up"));
    await setting.clock.advance(10);
    expect(setting.ended).toBe(true);
    expect(setting.logged.join("")).toContain("reconcile cut short");
  });

  test("a stop before the stores are there returns", async () => {
    const setting = new Setting(nothing);
    const run = setting.controller.run({ stop: setting.stop.signal, kill: setting.kill.signal });
    setting.stop.abort();
    await run;
    expect(setting.seen).toEqual([]);
  });
});
