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

/** An elector that the test controls. */
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

class TestManager {
  readonly clock: ManualClock = manualClock(0);
  readonly stacks: TestReflector = testReflector(stack);
  readonly steps: string[] = [];
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
        this.steps.push("reconcile");
        const result = await reconcile(key, context);
        this.steps.push(context.signal.aborted ? "aborted" : "reconciled");
        return result;
      },
    });
    this.manager = manager({
      reflectors: { stacks },
      controllers: [this.controller],
      clock,
      metrics,
      log,
      flush: async () => void this.steps.push("flush"),
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

function runningFor(ms: number, options: { ignoresAbort?: boolean } = {}): (fixture: () => TestManager) => Reconcile {
  return (fixture) => async (_key, context) => {
    await sleep(fixture().clock, ms, options.ignoresAbort ? undefined : context.signal);
    return done;
  };
}

describe("leading", () => {
  test("a replica on standby keeps its stores in sync and reconciles nothing", async () => {
    const elector = new TestElector();
    const fixture = await new TestManager(quick, { elector }).start();
    await fixture.clock.advance(60_000);
    expect([fixture.steps, fixture.stacks.running, fixture.manager.ready().ok]).toEqual([[], true, true]);
    elector.grant();
    await fixture.clock.advance(10);
    expect(fixture.steps).toEqual(["reconcile", "reconciled"]);
    fixture.stop.abort();
    await fixture.clock.advance(10);
    expect([fixture.outcome, fixture.stacks.running]).toEqual(["clean", false]);
  });

  test("a process without controllers leads for one term", async () => {
    const fixture: TestManager = new TestManager(quick);
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
    const idle = manager({ reflectors: {}, controllers: [], elector: counting, clock: fixture.clock });
    const run = idle.run(fixture.stop.signal);
    await fixture.clock.advance(10_000);
    expect(terms).toBe(1);
    fixture.stop.abort();
    await fixture.clock.advance(10);
    expect(await run).toBe("clean");
  });

  test("losing the lease aborts reconciles; the next term reconciles everything", async () => {
    const elector = new TestElector();
    const fixture: TestManager = new TestManager(
      runningFor(60_000)(() => fixture),
      { elector },
    );
    await fixture.start();
    elector.grant();
    await fixture.clock.advance(100);
    elector.lose();
    await fixture.clock.advance(100);
    expect(fixture.steps).toEqual(["reconcile", "aborted", "flush"]);
    elector.grant();
    await fixture.clock.advance(100);
    expect(fixture.steps.slice(3)).toEqual(["reconcile"]);
    fixture.stop.abort();
    await fixture.clock.advance(100_000);
    expect(fixture.outcome).toBe("clean");
  });
});

describe("stopping", () => {
  test("reconciles finish, then events are written, the lease is released and the watches end", async () => {
    const elector = new TestElector();
    const fixture: TestManager = new TestManager(
      runningFor(5000)(() => fixture),
      { elector },
    );
    await fixture.start();
    elector.grant();
    await fixture.clock.advance(1000);
    fixture.stop.abort();
    await fixture.clock.advance(3000);
    expect([fixture.steps, elector.released, fixture.stacks.running]).toEqual([["reconcile"], false, true]);
    await fixture.clock.advance(1100);
    expect(fixture.steps).toEqual(["reconcile", "reconciled", "flush"]);
    expect([elector.released, fixture.outcome, fixture.stacks.running]).toEqual([true, "clean", false]);
    expect(fixture.clock.pending).toBe(0);
  });

  test("reconciles that do not finish in time are aborted", async () => {
    const fixture: TestManager = new TestManager(
      runningFor(60_000)(() => fixture),
      { drainMs: 2000 },
    );
    await fixture.start();
    fixture.stop.abort();
    await fixture.clock.advance(1900);
    expect(fixture.steps).toEqual(["reconcile"]);
    await fixture.clock.advance(200);
    expect([fixture.steps, fixture.outcome]).toEqual([["reconcile", "aborted", "flush"], "clean"]);
  });

  test("a reconcile that ignores its signal forces the stop", async () => {
    const fixture: TestManager = new TestManager(
      runningFor(1e9, { ignoresAbort: true })(() => fixture),
      { drainMs: 2000 },
    );
    await fixture.start();
    fixture.stop.abort();
    await fixture.clock.advance(6900);
    expect(fixture.outcome).toBeUndefined();
    await fixture.clock.advance(200);
    expect(fixture.outcome).toBe("forced");
  });

  test("a flush that hangs delays the stop by at most two seconds", async () => {
    const flush = async (): Promise<void> => await new Promise(() => undefined);
    const fixture = await new TestManager(quick, { flush }).start();
    fixture.stop.abort();
    await fixture.clock.advance(2100);
    expect(fixture.outcome).toBe("clean");
  });

  test("a controller that fails ends the process", async () => {
    const broken: Controller = {
      name: "broken",
      reflectors: [],
      run: () => Promise.reject(new Error("no way")),
      enqueue: () => undefined,
      longestRunningMs: () => 0,
    };
    const fixture: TestManager = new TestManager(quick);
    const both = manager({
      reflectors: { stacks: fixture.stacks },
      controllers: [fixture.controller, broken],
      elector: soleLeader(),
      clock: fixture.clock,
    });
    fixture.stacks.sync();
    const outcome = both.run(fixture.stop.signal).catch((error: unknown) => error);
    await fixture.clock.advance(100);
    expect(String(await outcome)).toContain("no way");
    expect(fixture.stacks.running).toBe(false);
  });
});

describe("endpoints", () => {
  const loopback = { port: 0, hostname: "127.0.0.1" };

  test("readiness follows the reflectors, liveness the workers; metrics are served", async () => {
    const fixture: TestManager = new TestManager(
      runningFor(1e9)(() => fixture),
      { probes: loopback, metricsEndpoint: loopback },
    );
    await fixture.start();
    const { probes, metrics } = fixture.manager.ports;
    const get = async (port: number | undefined, path: string): Promise<[number, string]> => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`);
      return [response.status, await response.text()];
    };
    expect(await get(probes, "/readyz")).toEqual([200, "[+] reflector stacks\nok\n"]);
    fixture.stacks.healthy = false;
    expect(await get(probes, "/readyz")).toEqual([
      503,
      "[-] reflector stacks: out of sync with the API server\nnot ok\n",
    ]);
    expect(await get(probes, "/healthz")).toEqual([200, "[+] event loop\n[+] controller stack\nok\n"]);
    await fixture.clock.advance(600_000);
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
    const accept = "application/openmetrics-text;version=1.0.0";
    const open = await fetch(`http://127.0.0.1:${metrics}/metrics`, { headers: { accept } });
    expect(open.headers.get("content-type")).toStartWith("application/openmetrics-text");
    expect(await open.text()).toEndWith("# EOF\n");
    expect((await get(probes, "/metrics"))[0]).toBe(404);
    expect((await fetch(`http://127.0.0.1:${probes}/healthz`, { method: "POST" })).status).toBe(405);
    fixture.stop.abort();
    await fixture.clock.advance(30_000);
    expect(fixture.outcome).toBe("clean");
    expect(get(probes, "/healthz")).rejects.toThrow();
  });

  test("a port in use fails the start and leaves nothing open", async () => {
    const taken = Bun.serve({ ...loopback, fetch: () => new Response() });
    const metricsEndpoint = { port: taken.port ?? 0, hostname: "127.0.0.1" };
    const fixture = await new TestManager(quick, { probes: loopback, metricsEndpoint }).start();
    expect(String(fixture.failure)).toContain("port");
    expect(fixture.clock.pending).toBe(0);
    await taken.stop();
  });
});

test("a controller with an unknown reflector and two controllers with the same name are rejected", () => {
  const stray = controller({ name: "stray", reflector: testReflector(), reconcile: quick });
  expect(() => manager({ reflectors: {}, controllers: [stray] })).toThrow("stray");
  const stacks = testReflector();
  const [a, b] = [0, 1].map(() => controller({ name: "twin", reflector: stacks, reconcile: quick }));
  expect(() => manager({ reflectors: { stacks }, controllers: [a, b].filter((each) => each !== undefined) })).toThrow(
    "twin",
  );
});
