import { describe, expect, test } from "bun:test";
import { testReflector, type TestReflector } from "../../testing/test-reflector.ts";
import { whenAborted } from "../abort.ts";
import { sleep } from "../clock.ts";
import { controller, type Controller, type Reconcile } from "./controller.ts";
import { NotLeaderError, soleLeader, type Elector, type Term } from "../leader/leadership.ts";
import { logger } from "../telemetry/log.ts";
import { manager, type Manager, type ManagerOptions, type StopOutcome } from "./manager.ts";
import { manualClock, type ManualClock } from "../manual-clock.ts";
import { metricsRegistry } from "../telemetry/metrics.ts";
import { done } from "./queue.ts";
import type { KubeObject } from "../resource.ts";

const stack: KubeObject = { apiVersion: "v1", kind: "Stack", metadata: { namespace: "a", name: "1" } };

/** An elector in the hands of the test. */
class TestElector implements Elector {
  term: Term | undefined;
  #end = new AbortController();
  #grant = Promise.withResolvers<void>();
  released = false;

  isCertain(): boolean {
    return this.term !== undefined;
  }

  guard<T>(_operation: string, write: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return write(this.#end.signal);
  }

  grant(): void {
    this.#grant.resolve();
  }

  lose(): void {
    this.#grant = Promise.withResolvers();
    this.#end.abort(new NotLeaderError("lost"));
  }

  async run(stop: AbortSignal, lead: (term: Term) => Promise<void>): Promise<void> {
    while (!stop.aborted) {
      await Promise.race([this.#grant.promise, whenAborted(stop)]);
      if (stop.aborted) return;
      this.#end = new AbortController();
      this.term = { epoch: 1, signal: this.#end.signal };
      await lead(this.term);
      this.term = undefined;
      this.released = !this.#end.signal.aborted;
    }
  }
}

class Setting {
  readonly clock: ManualClock = manualClock(0);
  readonly stacks: TestReflector = testReflector(stack);
  readonly story: string[] = [];
  readonly stop = new AbortController();
  readonly controller: Controller;
  readonly manager: Manager;
  outcome: StopOutcome | undefined;
  failure: unknown;

  constructor(reconcile: Reconcile, options: Partial<ManagerOptions> = {}) {
    const { clock, stacks } = this;
    const metrics = metricsRegistry();
    const log = logger({ write: () => undefined });
    this.controller = controller({
      name: "stack",
      reflector: stacks,
      clock,
      metrics,
      log,
      deadlineMs: 3_600_000,
      reconcile: async (key, context) => {
        this.story.push("reconcile");
        const result = await reconcile(key, context);
        this.story.push(context.signal.aborted ? "aborted" : "reconciled");
        return result;
      },
    });
    this.manager = manager({
      reflectors: { stacks },
      controllers: [this.controller],
      clock,
      metrics,
      log,
      flush: async () => void this.story.push("flush"),
      ...options,
    });
  }

  async start(): Promise<this> {
    this.stacks.sync();
    void this.manager.run(this.stop.signal).then(
      (outcome) => (this.outcome = outcome),
      (failure: unknown) => (this.failure = failure),
    );
    await this.clock.advance(0);
    return this;
  }
}

const quick: Reconcile = async () => done;

function lasting(ms: number, options: { heedless?: boolean } = {}): (setting: () => Setting) => Reconcile {
  return (setting) => async (_key, context) => {
    await sleep(setting().clock, ms, options.heedless ? undefined : context.signal);
    return done;
  };
}

describe("leading", () => {
  test("a replica that stands by keeps its stores warm and reconciles nothing", async () => {
    const elector = new TestElector();
    const setting = await new Setting(quick, { elector }).start();
    await setting.clock.advance(60_000);
    expect([setting.story, setting.stacks.running, setting.manager.ready().ok]).toEqual([[], true, true]);
    elector.grant();
    await setting.clock.advance(10);
    expect(setting.story).toEqual(["reconcile", "reconciled"]);
    setting.stop.abort();
    await setting.clock.advance(10);
    expect([setting.outcome, setting.stacks.running]).toEqual(["clean", false]);
  });

  test("a process without controllers leads as quietly", async () => {
    const setting: Setting = new Setting(quick);
    let terms = 0;
    const elector = soleLeader();
    const counting: Elector = {
      ...elector,
      term: undefined,
      run: (stop, lead) =>
        elector.run(stop, (term) => {
          terms++;
          return lead(term);
        }),
    };
    const idle = manager({ reflectors: {}, controllers: [], elector: counting, clock: setting.clock });
    const run = idle.run(setting.stop.signal);
    await setting.clock.advance(10_000);
    expect(terms).toBe(1);
    setting.stop.abort();
    await setting.clock.advance(10);
    expect(await run).toBe("clean");
  });

  test("a lost term aborts its reconciles; the next one looks at everything again", async () => {
    const elector = new TestElector();
    const setting: Setting = new Setting(
      lasting(60_000)(() => setting),
      { elector },
    );
    await setting.start();
    elector.grant();
    await setting.clock.advance(100);
    elector.lose();
    await setting.clock.advance(100);
    expect(setting.story).toEqual(["reconcile", "aborted", "flush"]);
    elector.grant();
    await setting.clock.advance(100);
    expect(setting.story.slice(3)).toEqual(["reconcile"]);
    setting.stop.abort();
    await setting.clock.advance(100_000);
    expect(setting.outcome).toBe("clean");
  });
});

describe("stopping", () => {
  test("reconciles end, then events are written, then the lease is given back, then watches end", async () => {
    const elector = new TestElector();
    const setting: Setting = new Setting(
      lasting(5000)(() => setting),
      { elector },
    );
    await setting.start();
    elector.grant();
    await setting.clock.advance(1000);
    setting.stop.abort();
    await setting.clock.advance(3000);
    expect([setting.story, elector.released, setting.stacks.running]).toEqual([["reconcile"], false, true]);
    await setting.clock.advance(1100);
    expect(setting.story).toEqual(["reconcile", "reconciled", "flush"]);
    expect([elector.released, setting.outcome, setting.stacks.running]).toEqual([true, "clean", false]);
    expect(setting.clock.pending).toBe(0);
  });

  test("reconciles that do not end in time are aborted", async () => {
    const setting: Setting = new Setting(
      lasting(60_000)(() => setting),
      { drainMs: 2000 },
    );
    await setting.start();
    setting.stop.abort();
    await setting.clock.advance(1900);
    expect(setting.story).toEqual(["reconcile"]);
    await setting.clock.advance(200);
    expect([setting.story, setting.outcome]).toEqual([["reconcile", "aborted", "flush"], "clean"]);
  });

  test("one that heeds nothing is left behind", async () => {
    const setting: Setting = new Setting(
      lasting(1e9, { heedless: true })(() => setting),
      { drainMs: 2000 },
    );
    await setting.start();
    setting.stop.abort();
    await setting.clock.advance(6900);
    expect(setting.outcome).toBeUndefined();
    await setting.clock.advance(200);
    expect(setting.outcome).toBe("forced");
  });

  test("a flush that hangs delays the end by two seconds at most", async () => {
    const flush = async (): Promise<void> => await new Promise(() => undefined);
    const setting = await new Setting(quick, { flush }).start();
    setting.stop.abort();
    await setting.clock.advance(2100);
    expect(setting.outcome).toBe("clean");
  });

  test("a controller that fails takes the process with it", async () => {
    const broken: Controller = {
      name: "broken",
      reflectors: [],
      run: () => Promise.reject(new Error("no way")),
      enqueue: () => undefined,
      longestRunningMs: () => 0,
    };
    const setting: Setting = new Setting(quick);
    const both = manager({
      reflectors: { stacks: setting.stacks },
      controllers: [setting.controller, broken],
      elector: soleLeader(),
      clock: setting.clock,
    });
    setting.stacks.sync();
    const outcome = both.run(setting.stop.signal).catch((error: unknown) => error);
    await setting.clock.advance(100);
    expect(String(await outcome)).toContain("no way");
    expect(setting.stacks.running).toBe(false);
  });
});

describe("endpoints", () => {
  const loopback = { port: 0, hostname: "127.0.0.1" };

  test("readiness follows the reflectors, liveness the workers; metrics are served", async () => {
    const setting: Setting = new Setting(
      lasting(1e9)(() => setting),
      { probes: loopback, metricsEndpoint: loopback },
    );
    await setting.start();
    const { probes, metrics } = setting.manager.ports;
    const get = async (port: number | undefined, path: string): Promise<[number, string]> => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`);
      return [response.status, await response.text()];
    };
    expect(await get(probes, "/readyz")).toEqual([200, "[+] reflector stacks\nok\n"]);
    setting.stacks.healthy = false;
    expect(await get(probes, "/readyz")).toEqual([
      503,
      "[-] reflector stacks: out of step with the API server\nnot ok\n",
    ]);
    expect(await get(probes, "/healthz")).toEqual([200, "[+] event loop\n[+] controller stack\nok\n"]);
    await setting.clock.advance(600_000);
    expect(await get(probes, "/healthz")).toEqual([
      503,
      "[+] event loop\n[-] controller stack: a reconcile has been running for 600 s\nnot ok\n",
    ]);
    const [status, text] = await get(metrics, "/metrics");
    expect(status).toBe(200);
    expect(text).toContain('controller_runtime_active_workers{controller="stack"} 1\n');
    expect(text).toContain('reflector_objects{reflector="stacks"} 1\n');
    expect(text).toContain('reflector_healthy{reflector="stacks"} 0\n');
    expect(text).toContain("event_loop_lag_seconds 0\n");
    expect((await get(probes, "/metrics"))[0]).toBe(404);
    expect((await fetch(`http://127.0.0.1:${probes}/healthz`, { method: "POST" })).status).toBe(405);
    setting.stop.abort();
    await setting.clock.advance(30_000);
    expect(setting.outcome).toBe("clean");
    expect(get(probes, "/healthz")).rejects.toThrow();
  });

  test("a port that is taken fails the start and leaves nothing open", async () => {
    const taken = Bun.serve({ ...loopback, fetch: () => new Response() });
    const metricsEndpoint = { port: taken.port ?? 0, hostname: "127.0.0.1" };
    const setting = await new Setting(quick, { probes: loopback, metricsEndpoint }).start();
    expect(String(setting.failure)).toContain("port");
    expect(setting.clock.pending).toBe(0);
    await taken.stop();
  });
});

test("a controller whose stores no one fills, and two of one name, are refused", () => {
  const stray = controller({ name: "stray", reflector: testReflector(), reconcile: quick });
  expect(() => manager({ reflectors: {}, controllers: [stray] })).toThrow("stray");
  const stacks = testReflector();
  const [a, b] = [0, 1].map(() => controller({ name: "twin", reflector: stacks, reconcile: quick }));
  expect(() => manager({ reflectors: { stacks }, controllers: [a, b].filter((each) => each !== undefined) })).toThrow(
    "twin",
  );
});
