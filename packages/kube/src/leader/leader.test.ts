import { describe, expect, test } from "bun:test";
import { sleep, type Clock } from "../clock.ts";
import { connect } from "../client/connection/connection.ts";
import { staticCredentials } from "../client/connection/credentials.ts";
import type { HttpRequest } from "../client/requests/http.ts";
import { isObject, numberAt, objectAt, parseJson, textAt, type JsonObject } from "../client/requests/json.ts";
import { leaseElector, uniqueIdentity, type LeaseElectorOptions } from "./leader.ts";
import { NotLeaderError, type Elector, type Term } from "./leadership.ts";
import { manualClock, type ManualClock } from "../manual-clock.ts";
import { metricsRegistry } from "../telemetry/metrics.ts";

/** A minimal API server for one Lease: compare and swap, and a watch. */
class LeaseServer {
  lease: JsonObject | undefined;
  version = 0;
  annotations: Readonly<Record<string, string>> = {};
  requests: string[] = [];
  /** "down" refuses connections, "deaf" ignores requests, "mute" processes them; neither of the last two responds. */
  state: "well" | "down" | "deaf" | "mute" = "well";
  watchable = true;
  /** Delays every response. */
  delay: () => Promise<void> = () => Promise.resolve();
  readonly #watchers = new Set<ReadableStreamDefaultController<Uint8Array>>();

  readonly transport = async (request: HttpRequest): Promise<Response> => {
    const watch = request.url.includes("watch=true");
    this.requests.push(`${watch ? "WATCH" : request.method}${request.freshConnection ? " fresh" : ""}`);
    if (this.state === "down") throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
    if (this.state === "deaf") return await never(request.signal);
    const answer = watch ? this.#watch(request.signal) : this.#answer(request);
    await this.delay();
    return this.state === "mute" ? await never(request.signal) : answer;
  };

  get holder(): string | undefined {
    return this.lease && (textAt(objectAt(this.lease, "spec"), "holderIdentity") ?? "");
  }

  get transitions(): number | undefined {
    return numberAt(objectAt(this.lease, "spec"), "leaseTransitions");
  }

  annotate(annotations: Readonly<Record<string, string>>): void {
    this.annotations = annotations;
    this.set(objectAt(this.lease, "spec"));
  }

  set(spec: object | undefined): void {
    const type = spec === undefined ? "DELETED" : "MODIFIED";
    this.version++;
    const old = this.lease;
    this.lease = spec && {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: {
        name: "op",
        namespace: "ns",
        resourceVersion: String(this.version),
        annotations: { ...this.annotations },
      },
      spec,
    };
    const line = new TextEncoder().encode(`${JSON.stringify({ type, object: this.lease ?? old })}\n`);
    for (const watcher of this.#watchers) watcher.enqueue(line);
  }

  #answer(request: HttpRequest): Response {
    const body = parseJson(request.body ?? "{}");
    if (request.url.includes("fieldSelector")) {
      return Response.json({ metadata: { resourceVersion: String(this.version) }, items: [] });
    }
    if (request.method === "POST") {
      if (this.lease) return failure(409, "AlreadyExists");
      this.set(objectAt(body, "spec"));
    }
    if (!this.lease) return failure(404, "NotFound");
    if (request.method === "PATCH") {
      if (textAt(objectAt(body, "metadata"), "resourceVersion") !== String(this.version))
        return failure(409, "Conflict");
      this.set({ ...objectAt(this.lease, "spec"), ...objectAt(body, "spec") });
    }
    return Response.json(this.lease);
  }

  #watch(signal: AbortSignal): Response {
    if (!this.watchable) return failure(403, "Forbidden");
    const start = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
      this.#watchers.add(controller);
      signal.addEventListener("abort", () => {
        this.#watchers.delete(controller);
        controller.error(signal.reason);
      });
    };
    return new Response(new ReadableStream<Uint8Array>({ start }));
  }
}

function failure(code: number, reason: string): Response {
  return Response.json({ kind: "Status", code, reason, message: reason }, { status: code });
}

async function never(signal: AbortSignal): Promise<never> {
  return await new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new Error("aborted")));
  });
}

/** One process: an elector, and its terms so far. */
class Replica {
  readonly elector: Elector;
  readonly terms: { epoch: number; from: number; to?: number; term: Term }[] = [];
  readonly #stop = new AbortController();
  readonly #clock: ManualClock;
  readonly #run: Promise<void>;
  /** How long work continues after it was stopped. */
  drainMs = 0;

  constructor(world: World, name: string, options: Partial<LeaseElectorOptions> = {}) {
    this.#clock = world.clock;
    const { clock } = world;
    const credentials = staticCredentials({ server: "https://api.test", tls: {} });
    const client = connect(credentials, { transport: world.server.transport, clock, random: () => 0.5 });
    this.elector = leaseElector({
      client,
      lease: { namespace: "ns", name: "op" },
      identity: name,
      clock,
      random: () => 0.5,
      ...options,
    });
    this.#run = this.elector.run(this.#stop.signal, (term) => this.#lead(term));
  }

  async #lead(term: Term): Promise<void> {
    const entry: Replica["terms"][number] = { epoch: term.epoch, from: this.#clock.now(), term };
    this.terms.push(entry);
    const end = new AbortController();
    term.signal.addEventListener("abort", () => end.abort());
    this.#stop.signal.addEventListener("abort", () => end.abort());
    while (!end.signal.aborted && !this.#stop.signal.aborted) await sleep(this.#clock, 1000, end.signal);
    if (this.drainMs > 0) await sleep(this.#clock, this.drainMs);
    entry.to = this.#clock.now();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#run;
  }
}

interface World {
  readonly clock: ManualClock;
  readonly server: LeaseServer;
}

function world(): World {
  return { clock: manualClock(0), server: new LeaseServer() };
}

/** A clock whose wall clock was set. */
function shifted(clock: Clock, by: () => number): Clock {
  return { ...clock, now: () => clock.now() + by() };
}

const write = async (): Promise<string> => "written";

describe("taking the lease", () => {
  test("the first candidate creates it and leads", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(10);
    expect([server.holder, server.transitions]).toEqual(["a", 0]);
    expect(a.elector.term?.epoch).toBe(0);
    expect(await a.elector.guard("create Pod x", write)).toBe("written");
    await a.stop();
  });

  test("a second candidate waits as long as the first leads", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(10);
    const b = new Replica({ clock, server }, "b");
    await clock.advance(300_000);
    expect([server.holder, a.terms.length, b.terms.length]).toEqual(["a", 1, 0]);
    expect(b.elector.guard("create Pod x", write)).rejects.toBeInstanceOf(NotLeaderError);
    await Promise.all([a.stop(), b.stop()]);
  });

  test("a lease that is not renewed is taken after its duration on the local clock, not by its timestamps", async () => {
    const { clock, server } = world();
    server.set({
      holderIdentity: "gone",
      leaseDurationSeconds: 15,
      leaseTransitions: 7,
      renewTime: "1999-01-01T00:00:00.000000Z",
    });
    const b = new Replica({ clock, server }, "b");
    await clock.advance(14_900);
    expect(server.holder).toBe("gone");
    await clock.advance(200);
    expect([server.holder, b.elector.term?.epoch]).toEqual(["b", 8]);
    await b.stop();
  });

  test("setting the wall clock forward does not make a candidate take a lease too early", async () => {
    const { clock, server } = world();
    server.set({ holderIdentity: "a", leaseDurationSeconds: 15, leaseTransitions: 0 });
    let jump = 0;
    const b = new Replica({ clock, server }, "b", { clock: shifted(clock, () => jump) });
    await clock.advance(5000);
    jump = 3_600_000;
    await clock.advance(9900);
    expect(server.holder).toBe("a");
    await clock.advance(200);
    expect(server.holder).toBe("b");
    await b.stop();
  });

  test("a deleted lease is not recreated before its holder must have noticed", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(10);
    const b = new Replica({ clock, server }, "b");
    await clock.advance(5000);
    server.set(undefined);
    await clock.advance(100);
    // The watch notified the holder immediately.
    expect(a.terms[0]?.to).toBeLessThan(5200);
    await clock.advance(30_000);
    expect(a.terms.length + b.terms.length).toBe(2);
    await Promise.all([a.stop(), b.stop()]);
  });

  test("a deleted lease is not recreated early when the holder cannot watch it either", async () => {
    const { clock, server } = world();
    server.watchable = false;
    const a = new Replica({ clock, server }, "a");
    await clock.advance(10);
    const b = new Replica({ clock, server }, "b");
    await clock.advance(4100);
    server.set(undefined);
    while (a.elector.isCertain()) {
      expect(b.elector.isCertain()).toBe(false);
      await clock.advance(50);
    }
    await clock.advance(30_000);
    expect(a.terms.length + b.terms.length).toBe(2);
    await Promise.all([a.stop(), b.stop()]);
  });
});

describe("handing over", () => {
  test("a clean stop releases the lease and the next leader starts immediately", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(10);
    const b = new Replica({ clock, server }, "b");
    await clock.advance(5500);
    const stopped = clock.now();
    await Promise.all([a.stop(), clock.advance(100)]);
    expect([server.holder, server.transitions]).toEqual(["b", 1]);
    expect((b.terms[0]?.from ?? Infinity) - stopped).toBeLessThanOrEqual(100);
    await b.stop();
  });

  test("without permission to watch, the handover takes a retry period", async () => {
    const { clock, server } = world();
    server.watchable = false;
    const a = new Replica({ clock, server }, "a");
    await clock.advance(10);
    const b = new Replica({ clock, server }, "b");
    await clock.advance(5500);
    await a.stop();
    await clock.advance(2500);
    expect(server.holder).toBe("b");
    await b.stop();
  });

  test("the lease is kept until the work is drained", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    a.drainMs = 20_000;
    await clock.advance(10);
    const b = new Replica({ clock, server }, "b");
    await clock.advance(1000);
    const stop = a.stop();
    await clock.advance(19_900);
    expect([server.holder, a.elector.isCertain()]).toEqual(["a", true]);
    await clock.advance(200);
    await stop;
    expect(server.holder).toBe("b");
    expect(b.terms[0]?.from).toBeGreaterThanOrEqual(a.terms[0]?.to ?? Infinity);
    await b.stop();
  });

  test("an aborted write delays the release; one that never ends prevents it", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(10);
    const cut = a.elector.guard("apply", () => Promise.reject(new Error("connection reset")));
    expect(cut).rejects.toThrow("connection reset");
    const stop = a.stop();
    await clock.advance(900);
    expect(server.holder).toBe("a");
    await clock.advance(200);
    await stop;
    expect(server.holder).toBe("");

    const b = new Replica({ clock, server }, "b");
    await clock.advance(10);
    void b.elector.guard("apply", async () => await new Promise<never>(() => undefined));
    const second = b.stop();
    await clock.advance(5000);
    await second;
    expect(server.holder).toBe("b");
  });

  test("of many candidates for a free lease, one wins", async () => {
    const { clock, server } = world();
    const replicas = ["a", "b", "c", "d"].map((name) => new Replica({ clock, server }, name));
    await clock.advance(5000);
    expect(replicas.filter(({ elector }) => elector.isCertain()).length).toBe(1);
    await Promise.all([...replicas.map((replica) => replica.stop()), clock.advance(100)]);
  });
});

describe("losing the lease", () => {
  test("without renewal, writes are rejected before the renew deadline and the term ends at it", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(3999);
    server.state = "down";
    const lastRenewal = 2000;
    await clock.advance(lastRenewal + 8990 - clock.now());
    expect(a.elector.isCertain()).toBe(true);
    await clock.advance(100);
    expect(a.elector.isCertain()).toBe(false);
    expect(a.elector.guard("create Pod x", write)).rejects.toThrow("create Pod x: rejected, not leading");
    expect(a.terms[0]?.term.signal.aborted).toBe(false);
    await clock.advance(1000);
    expect(a.terms[0]?.term.signal.aborted).toBe(true);
    expect(a.terms[0]?.to).toBeLessThanOrEqual(lastRenewal + 10_100);
    await a.stop();
  });

  test("the deadline counts from when a renewal was sent, not from its response", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(1000);
    server.delay = () => sleep(clock, 3000);
    // The response to the renewal sent at 2 s arrives at 5 s, that to the next one never.
    await clock.advance(4500);
    server.state = "down";
    await clock.advance(2000 + 8950 - clock.now());
    expect(a.elector.isCertain()).toBe(true);
    await clock.advance(100);
    expect(a.elector.isCertain()).toBe(false);
    await Promise.all([a.stop(), clock.advance(20_000)]);
  });

  test("after a failure, the next call uses a fresh connection", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(3000);
    expect(server.requests).not.toContain("PATCH fresh");
    server.state = "deaf";
    await clock.advance(8500);
    expect(server.requests).toContain("PATCH fresh");
    expect(a.terms[0]?.term.signal.aborted).toBe(false);
    server.state = "well";
    await Promise.all([a.stop(), clock.advance(5000)]);
  });

  test("writes in flight are aborted when the term ends", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(10);
    const cut = a.elector.guard("apply", (signal) => never(signal));
    server.state = "down";
    const outcome = cut.catch((error: unknown) => error);
    await clock.advance(20_000);
    expect(await outcome).toBeInstanceOf(NotLeaderError);
    expect(String(await outcome)).toContain("aborted, no longer leading");
    await a.stop();
  });

  for (const state of ["down", "deaf", "mute"] as const) {
    test(`an API server that is ${state} briefly does not end the term, for long it does, and there are never two leaders`, async () => {
      const { clock, server } = world();
      const a = new Replica({ clock, server }, "a");
      const b = new Replica({ clock, server }, "b");
      await clock.advance(5500);
      server.state = state;
      await clock.advance(4000);
      server.state = "well";
      await clock.advance(5000);
      expect(a.terms.length + b.terms.length).toBe(1);
      server.state = state;
      await clock.advance(60_000);
      expect([a.elector.isCertain(), b.elector.isCertain()]).toEqual([false, false]);
      server.state = "well";
      await clock.advance(60_000);
      const terms = [...a.terms, ...b.terms].toSorted((x, y) => x.epoch - y.epoch);
      expect(terms.length).toBeGreaterThanOrEqual(2);
      for (const [i, term] of terms.entries()) {
        if (i > 0) expect(term.from).toBeGreaterThanOrEqual(terms[i - 1]?.to ?? Infinity);
      }
      await Promise.all([a.stop(), b.stop(), clock.advance(10_000)]);
    });
  }

  test("a process that was paused notices before it writes, even if no timer has run", async () => {
    const { clock, server } = world();
    let wall = 0;
    let monotonic = 0;
    const paused = { ...shifted(clock, () => wall), monotonic: () => clock.monotonic() + monotonic };
    const a = new Replica({ clock, server }, "a", { clock: paused });
    await clock.advance(10);
    monotonic = 9500;
    expect(a.elector.isCertain()).toBe(false);
    monotonic = 0;
    expect(a.elector.isCertain()).toBe(true);
    // The machine was suspended, and the monotonic clock stopped.
    wall = 9500;
    expect(a.elector.isCertain()).toBe(false);
    // Setting the wall clock back hides nothing.
    wall = -3_600_000;
    monotonic = 9500;
    expect(a.elector.isCertain()).toBe(false);
    monotonic = 0;
    wall = 0;
    await a.stop();
  });

  test("another holder in the lease ends the term immediately", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(500);
    server.set({ holderIdentity: "thief", leaseDurationSeconds: 15, leaseTransitions: 4 });
    await clock.advance(50);
    expect(a.terms[0]?.to).toBeLessThanOrEqual(550);
    expect(a.elector.term).toBeUndefined();
    await a.stop();
    expect(server.holder).toBe("thief");
  });

  test("a changed label on the lease does not end the term", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(500);
    server.set(objectAt(server.lease, "spec"));
    await clock.advance(60_000);
    expect(a.terms.length).toBe(1);
    await a.stop();
  });

  test("annotations are received before the term starts, and when they change, without a further request meanwhile", async () => {
    const { clock, server } = world();
    const received: unknown[] = [];
    const onAnnotations = (annotations: unknown): number =>
      received.push([annotations, a.elector.term === undefined ? "candidate" : "leader"]);
    server.annotations = { stop: "yes" };
    const a: Replica = new Replica({ clock, server }, "a", { onAnnotations });
    await clock.advance(10);
    expect(received).toEqual([[{ stop: "yes" }, "candidate"]]);
    server.requests = [];
    await clock.advance(10_000);
    expect(server.requests).toEqual(Array.from({ length: 5 }, () => "PATCH"));
    server.annotate({ stop: "no" });
    await clock.advance(10);
    expect(received.slice(1)).toEqual([[{ stop: "no" }, "leader"]]);
    await clock.advance(10_000);
    expect([received.length, a.terms.length]).toEqual([2, 1]);
    await a.stop();
  });

  test("without permission to watch, changed annotations are received with the next renewal", async () => {
    const { clock, server } = world();
    server.watchable = false;
    const received: unknown[] = [];
    const a = new Replica({ clock, server }, "a", { onAnnotations: (annotations) => received.push(annotations) });
    await clock.advance(10);
    server.annotate({ stop: "yes" });
    await clock.advance(2100);
    expect(received).toEqual([{}, { stop: "yes" }]);
    await a.stop();
  });

  test("no new term starts while the work of the last one continues", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    a.drainMs = 50_000;
    await clock.advance(500);
    server.state = "down";
    await clock.advance(12_000);
    server.state = "well";
    await clock.advance(40_000);
    expect(a.terms.length).toBe(1);
    await clock.advance(20_000);
    expect(a.terms.length).toBe(2);
    a.drainMs = 0;
    await a.stop();
  });
});

describe("the alarm", () => {
  class TestAlarm {
    /** When it would end the process. */
    due: number | undefined;
    readonly #clock: ManualClock;

    constructor(clock: ManualClock) {
      this.#clock = clock;
    }

    set(ms: number): void {
      this.due = this.#clock.now() + ms;
    }

    clear(): void {
      this.due = undefined;
    }
  }

  test("is set between the end of our term and the earliest start of another, and reset with each renewal", async () => {
    const { clock, server } = world();
    const alarm = new TestAlarm(clock);
    const a = new Replica({ clock, server }, "a", { alarm });
    await clock.advance(100);
    expect(alarm.due).toBe(12_500);
    await clock.advance(2000);
    expect(alarm.due).toBe(14_500);
    await a.stop();
    expect(alarm.due).toBeUndefined();
  });

  test("is cleared after a term has ended", async () => {
    const { clock, server } = world();
    const alarm = new TestAlarm(clock);
    const a = new Replica({ clock, server }, "a", { alarm });
    await clock.advance(100);
    server.state = "down";
    await clock.advance(10_100);
    expect([a.terms.length, a.elector.term, alarm.due]).toEqual([1, undefined, undefined]);
    await a.stop();
  });

  test("stays set while a write that cannot be aborted is in flight", async () => {
    const { clock, server } = world();
    const alarm = new TestAlarm(clock);
    const a = new Replica({ clock, server }, "a", { alarm });
    await clock.advance(100);
    void a.elector.guard("apply", async () => await new Promise<never>(() => undefined));
    server.set({ holderIdentity: "thief", leaseDurationSeconds: 15, leaseTransitions: 4 });
    await clock.advance(10_000);
    expect(alarm.due).toBe(12_500);
    await a.stop();
  });
});

test("impossible timings are rejected", () => {
  const { clock, server } = world();
  const make = (options: Partial<LeaseElectorOptions>) => () => new Replica({ clock, server }, "a", options);
  expect(make({ leaseDurationMs: 10_000 })).toThrow("leaseDuration");
  expect(make({ retryPeriodMs: 9000 })).toThrow("renewDeadline");
  expect(make({ retryPeriodMs: 0 })).toThrow("retryPeriod");
});

test("the metrics of every replica show whether one holds the Lease", async () => {
  const { clock, server } = world();
  const [first, second] = [metricsRegistry(), metricsRegistry()];
  const held = (value: number): string => `leader_election_lease_held{name="op"} ${value}\n`;
  const a = new Replica({ clock, server }, "a", { metrics: first });
  expect(first.expose()).toContain(held(0));
  await clock.advance(10);
  const b = new Replica({ clock, server }, "b", { metrics: second });
  await clock.advance(60_000);
  expect(second.expose()).toContain('leader_election_master_status{name="op"} 0\n');
  for (const each of [first, second]) expect(each.expose()).toContain(held(1));
  // Nobody can renew it, or see that it is renewed.
  server.state = "down";
  await clock.advance(60_000);
  for (const each of [first, second]) expect(each.expose()).toContain(held(0));
  server.state = "well";
  await Promise.all([a.stop(), b.stop()]);
});

test("the metrics show who leads, and identities are unique", async () => {
  const { clock, server } = world();
  const metrics = metricsRegistry();
  const a = new Replica({ clock, server }, "a", { metrics });
  expect(metrics.expose()).toContain('leader_election_master_status{name="op"} 0\n');
  await clock.advance(10);
  expect(metrics.expose()).toContain('leader_election_master_status{name="op"} 1\n');
  await a.stop();
  expect(uniqueIdentity("pod")).not.toBe(uniqueIdentity("pod"));
  expect(isObject(server.lease)).toBe(true);
});
