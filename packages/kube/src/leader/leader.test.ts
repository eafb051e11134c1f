import { describe, expect, test } from "bun:test";
import { sleep, type Clock } from "../clock.ts";
import { connect } from "../client/connection.ts";
import { staticCredentials } from "../client/credentials.ts";
import type { HttpRequest } from "../client/http.ts";
import { isObject, numberAt, objectAt, parseJson, textAt, type JsonObject } from "../client/json.ts";
import { leaseElector, uniqueIdentity, type LeaseElectorOptions } from "./leader.ts";
import { NotLeaderError, type Elector, type Term } from "./leadership.ts";
import { manualClock, type ManualClock } from "../manual-clock.ts";
import { metricsRegistry } from "../telemetry/metrics.ts";

/** As much of an API server as one Lease needs: compare and swap, and a watch. */
class LeaseServer {
  lease: JsonObject | undefined;
  version = 0;
  requests: string[] = [];
  /** "down" refuses, "deaf" takes requests and says nothing, "mute" carries them out and says nothing. */
  mood: "well" | "down" | "deaf" | "mute" = "well";
  watchable = true;
  /** How long answers take to arrive. */
  delay: () => Promise<void> = () => Promise.resolve();
  readonly #watchers = new Set<ReadableStreamDefaultController<Uint8Array>>();

  readonly transport = async (request: HttpRequest): Promise<Response> => {
    const watch = request.url.includes("watch=true");
    this.requests.push(`${watch ? "WATCH" : request.method}${request.freshConnection ? " fresh" : ""}`);
    if (this.mood === "down") throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
    if (this.mood === "deaf") return await never(request.signal);
    const answer = watch ? this.#watch(request.signal) : this.#answer(request);
    await this.delay();
    return this.mood === "mute" ? await never(request.signal) : answer;
  };

  get holder(): string | undefined {
    return this.lease && (textAt(objectAt(this.lease, "spec"), "holderIdentity") ?? "");
  }

  get transitions(): number | undefined {
    return numberAt(objectAt(this.lease, "spec"), "leaseTransitions");
  }

  set(spec: object | undefined): void {
    const type = spec === undefined ? "DELETED" : "MODIFIED";
    this.version++;
    const old = this.lease;
    this.lease = spec && {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "op", namespace: "ns", resourceVersion: String(this.version) },
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
      if (this.lease) return refusal(409, "AlreadyExists");
      this.set(objectAt(body, "spec"));
    }
    if (!this.lease) return refusal(404, "NotFound");
    if (request.method === "PATCH") {
      if (textAt(objectAt(body, "metadata"), "resourceVersion") !== String(this.version))
        return refusal(409, "Conflict");
      this.set({ ...objectAt(this.lease, "spec"), ...objectAt(body, "spec") });
    }
    return Response.json(this.lease);
  }

  #watch(signal: AbortSignal): Response {
    if (!this.watchable) return refusal(403, "Forbidden");
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

function refusal(code: number, reason: string): Response {
  return Response.json({ kind: "Status", code, reason, message: reason }, { status: code });
}

async function never(signal: AbortSignal): Promise<never> {
  return await new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new Error("aborted")));
  });
}

/** One process: an elector, and the terms it had. */
class Replica {
  readonly elector: Elector;
  readonly terms: { epoch: number; from: number; to?: number; term: Term }[] = [];
  readonly #stop = new AbortController();
  readonly #clock: ManualClock;
  readonly #run: Promise<void>;
  /** How long work goes on after it was told to end. */
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

/** A wall clock that was set. */
function shifted(clock: Clock, by: () => number): Clock {
  return { ...clock, now: () => clock.now() + by() };
}

const write = async (): Promise<string> => "written";

describe("taking the lease", () => {
  test("the first to come creates it and leads", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(10);
    expect([server.holder, server.transitions]).toEqual(["a", 0]);
    expect(a.elector.term?.epoch).toBe(0);
    expect(await a.elector.guard("create Pod x", write)).toBe("written");
    await a.stop();
  });

  test("a second one waits, however long the first leads", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(10);
    const b = new Replica({ clock, server }, "b");
    await clock.advance(300_000);
    expect([server.holder, a.terms.length, b.terms.length]).toEqual(["a", 1, 0]);
    expect(b.elector.guard("create Pod x", write)).rejects.toBeInstanceOf(NotLeaderError);
    await Promise.all([a.stop(), b.stop()]);
  });

  test("a lease whose holder fell silent is taken after its duration as seen here, not by its own timestamps", async () => {
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

  test("a wall clock set forward makes no one take a lease too early", async () => {
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

  test("a lease that was deleted is not created anew before its holder must have noticed", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(10);
    const b = new Replica({ clock, server }, "b");
    await clock.advance(5000);
    server.set(undefined);
    await clock.advance(100);
    // The watch told the holder at once.
    expect(a.terms[0]?.to).toBeLessThan(5200);
    await clock.advance(30_000);
    expect(a.terms.length + b.terms.length).toBe(2);
    await Promise.all([a.stop(), b.stop()]);
  });

  test("nor when no watch tells the holder", async () => {
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
  test("a clean stop gives the lease back and the next leader begins at once", async () => {
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

  test("without the right to watch it takes a retry period", async () => {
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

  test("work that is drained keeps the lease until it is done", async () => {
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

  test("a write that was cut off delays the release; one that never ends prevents it", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(10);
    const cut = a.elector.guard("apply", () => Promise.reject(new Error("connection cut")));
    expect(cut).rejects.toThrow("connection cut");
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

  test("many rivals and a free lease: one wins", async () => {
    const { clock, server } = world();
    const replicas = ["a", "b", "c", "d"].map((name) => new Replica({ clock, server }, name));
    await clock.advance(5000);
    expect(replicas.filter(({ elector }) => elector.isCertain()).length).toBe(1);
    await Promise.all([...replicas.map((replica) => replica.stop()), clock.advance(100)]);
  });
});

describe("losing it", () => {
  test("without renewal, writes are refused before the renew deadline and the term ends at it", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(3999);
    server.mood = "down";
    const lastRenewal = 2000;
    await clock.advance(lastRenewal + 8990 - clock.now());
    expect(a.elector.isCertain()).toBe(true);
    await clock.advance(100);
    expect(a.elector.isCertain()).toBe(false);
    expect(a.elector.guard("create Pod x", write)).rejects.toThrow("create Pod x: refused, not leading");
    expect(a.terms[0]?.term.signal.aborted).toBe(false);
    await clock.advance(1000);
    expect(a.terms[0]?.term.signal.aborted).toBe(true);
    expect(a.terms[0]?.to).toBeLessThanOrEqual(lastRenewal + 10_100);
    await a.stop();
  });

  test("time counts from when a renewal was sent, not from when its answer came", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(1000);
    server.delay = () => sleep(clock, 3000);
    // The renewal sent at 2 s is answered at 5 s, the next one never.
    await clock.advance(4500);
    server.mood = "down";
    await clock.advance(2000 + 8950 - clock.now());
    expect(a.elector.isCertain()).toBe(true);
    await clock.advance(100);
    expect(a.elector.isCertain()).toBe(false);
    await Promise.all([a.stop(), clock.advance(20_000)]);
  });

  test("after trouble, the next call uses a new connection", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(3000);
    expect(server.requests).not.toContain("PATCH fresh");
    server.mood = "deaf";
    await clock.advance(8500);
    expect(server.requests).toContain("PATCH fresh");
    expect(a.terms[0]?.term.signal.aborted).toBe(false);
    server.mood = "well";
    await Promise.all([a.stop(), clock.advance(5000)]);
  });

  test("writes under way are cut off when the term ends", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(10);
    const cut = a.elector.guard("apply", (signal) => never(signal));
    server.mood = "down";
    const outcome = cut.catch((error: unknown) => error);
    await clock.advance(20_000);
    expect(await outcome).toBeInstanceOf(NotLeaderError);
    expect(String(await outcome)).toContain("cut off");
    await a.stop();
  });

  for (const mood of ["down", "deaf", "mute"] as const) {
    test(`an API server that is ${mood} for a while costs no term, for long costs it, and never makes two`, async () => {
      const { clock, server } = world();
      const a = new Replica({ clock, server }, "a");
      const b = new Replica({ clock, server }, "b");
      await clock.advance(5500);
      server.mood = mood;
      await clock.advance(4000);
      server.mood = "well";
      await clock.advance(5000);
      expect(a.terms.length + b.terms.length).toBe(1);
      server.mood = mood;
      await clock.advance(60_000);
      expect([a.elector.isCertain(), b.elector.isCertain()]).toEqual([false, false]);
      server.mood = "well";
      await clock.advance(60_000);
      const terms = [...a.terms, ...b.terms].toSorted((x, y) => x.epoch - y.epoch);
      expect(terms.length).toBeGreaterThanOrEqual(2);
      for (const [i, term] of terms.entries()) {
        if (i > 0) expect(term.from).toBeGreaterThanOrEqual(terms[i - 1]?.to ?? Infinity);
      }
      await Promise.all([a.stop(), b.stop(), clock.advance(10_000)]);
    });
  }

  test("a process that was paused knows it before it writes: no timer had to run", async () => {
    const { clock, server } = world();
    let wall = 0;
    let steady = 0;
    const paused = { ...shifted(clock, () => wall), monotonic: () => clock.monotonic() + steady };
    const a = new Replica({ clock, server }, "a", { clock: paused });
    await clock.advance(10);
    steady = 9500;
    expect(a.elector.isCertain()).toBe(false);
    steady = 0;
    expect(a.elector.isCertain()).toBe(true);
    // The machine slept, and the steady clock with it.
    wall = 9500;
    expect(a.elector.isCertain()).toBe(false);
    // Set back, the wall clock hides nothing.
    wall = -3_600_000;
    steady = 9500;
    expect(a.elector.isCertain()).toBe(false);
    steady = 0;
    wall = 0;
    await a.stop();
  });

  test("someone else's name in the lease ends the term at once", async () => {
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

  test("a label on the lease is no reason to lose it", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    await clock.advance(500);
    server.set(objectAt(server.lease, "spec"));
    await clock.advance(60_000);
    expect(a.terms.length).toBe(1);
    await a.stop();
  });

  test("no new term begins while work of the last one goes on", async () => {
    const { clock, server } = world();
    const a = new Replica({ clock, server }, "a");
    a.drainMs = 50_000;
    await clock.advance(500);
    server.mood = "down";
    await clock.advance(12_000);
    server.mood = "well";
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
    /** The time at which it would end the process. */
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

  test("is set between the end of our time and the beginning of another's, anew with each renewal", async () => {
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

  test("is not set for a term that ended by itself", async () => {
    const { clock, server } = world();
    const alarm = new TestAlarm(clock);
    const a = new Replica({ clock, server }, "a", { alarm });
    await clock.advance(100);
    server.mood = "down";
    await clock.advance(10_100);
    expect([a.terms.length, a.elector.term, alarm.due]).toEqual([1, undefined, undefined]);
    await a.stop();
  });

  test("stays set while a write goes on that cannot be called back", async () => {
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

test("timings that cannot work are refused", () => {
  const { clock, server } = world();
  const make = (options: Partial<LeaseElectorOptions>) => () => new Replica({ clock, server }, "a", options);
  expect(make({ leaseDurationMs: 10_000 })).toThrow("leaseDuration");
  expect(make({ retryPeriodMs: 9000 })).toThrow("renewDeadline");
  expect(make({ retryPeriodMs: 0 })).toThrow("retryPeriod");
});

test("leading shows in the metrics, and identities differ", async () => {
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
