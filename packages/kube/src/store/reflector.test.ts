/** The reflector with its production times, against an API server in memory, on a clock that tests move. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";

import { builtin } from "../client/builtin.ts";
import { productionTiming } from "./feed.ts";
import { manualClock, type ManualClock } from "../manual-clock.ts";
import { memoryServer, type ConfigMap, type MemoryServer } from "../../testing/memory-server.ts";
import { reflector, type ReflectorOptions } from "./reflector.ts";
import type { Change, Reflector } from "./store.ts";

let clock: ManualClock;
let server: MemoryServer;
let stop: AbortController;
let troubles: string[];
let running: Promise<void>[];

beforeEach(() => {
  clock = manualClock();
  server = memoryServer(clock);
  stop = new AbortController();
  troubles = [];
  running = [];
});
afterEach(async () => {
  stop.abort();
  await clock.advance(0);
  await Promise.all(running);
  expect(clock.pending).toBe(0);
});

async function start(options: ReflectorOptions<ConfigMap> = {}): Promise<Reflector<ConfigMap>> {
  const started = reflector<ConfigMap>(server.client, builtin.configMaps, {
    clock,
    onError: (_, what) => troubles.push(what),
    ...options,
  });
  running.push(started.run(stop.signal));
  await clock.advance(10);
  return started;
}

const versions = (objects: readonly ConfigMap[]): string[] =>
  objects.map(({ metadata }) => `${metadata.namespace}/${metadata.name}@${metadata.resourceVersion}`).toSorted();

function isEqual(reflected: Reflector<ConfigMap>): boolean {
  return Bun.deepEquals(versions(reflected.store.list()), versions(server.objects()));
}

/** Milliseconds until the store equals the server; fails after a minute. */
async function timeToEqual(reflected: Reflector<ConfigMap>): Promise<number> {
  const from = clock.now();
  while (!isEqual(reflected)) {
    expect(clock.now() - from).toBeLessThan(60_000);
    await clock.advance(100);
  }
  return clock.now() - from;
}

describe("in fair weather", () => {
  test("the first list fills the store, and events keep it full", async () => {
    server.put("a/x");
    const reflected = await start();
    expect(reflected.store.hasSynced).toBe(true);
    await reflected.waitForSync();
    const changes: Change<ConfigMap>[] = [];
    reflected.store.subscribe((change) => changes.push(change));
    server.put("a/x");
    server.put("a/y");
    server.remove("a/x");
    await clock.advance(0);
    expect(isEqual(reflected)).toBe(true);
    expect(changes.map(({ key, before, after }) => [key, before !== undefined, after !== undefined])).toEqual([
      ["a/x", true, true],
      ["a/y", false, true],
      ["a/x", true, false],
    ]);
  });

  test("an hour costs few lists, tells of nothing, and is healthy throughout", async () => {
    for (let i = 0; i < 10; i++) server.put(`a/${i}`);
    const reflected = await start();
    let told = 0;
    reflected.store.subscribe(() => told++);
    for (let second = 0; second < 3600; second++) {
      await clock.advance(1000);
      expect(reflected.healthy).toBe(true);
    }
    expect(troubles).toEqual([]);
    expect(told).toBe(0);
    expect(reflected.counts).toMatchObject({ lists: 1, differences: 0 });
    expect(reflected.counts.watches).toBeWithin(115, 182);
  });

  test("each change is told once, and none again by a later comparison", async () => {
    const reflected = await start();
    const told: string[] = [];
    reflected.store.subscribe(({ key, after }) => told.push(`${key}@${after?.metadata.resourceVersion ?? "gone"}`));
    server.put("a/x");
    server.put("a/x");
    server.remove("a/x");
    server.put("a/y");
    await clock.advance(300_000);
    expect(told).toEqual(["a/x@1", "a/x@2", "a/x@gone", "a/y@4"]);
  });

  test("only some namespaces, one of which is slow to list", async () => {
    server.put("a/x");
    server.put("b/x");
    server.put("c/x");
    server.faults.list = ({ namespace }) => namespace === "b" && clock.now() < server.startedAt + 5000;
    const reflected = await start({ namespaces: ["a", "b"] });
    expect(reflected.store.hasSynced).toBe(false);
    await clock.advance(30_000);
    await reflected.waitForSync();
    expect(versions(reflected.store.list())).toEqual(["a/x@1", "b/x@2"]);
    server.remove("a/x");
    await clock.advance(0);
    expect(versions(reflected.store.list())).toEqual(["b/x@2"]);
  });

  test("no namespace at all is a mistake", () => {
    expect(() => reflector(server.client, builtin.configMaps, { namespaces: [] })).toThrow("at least one");
  });

  test("objects are trimmed, first by us, then by the caller", async () => {
    server.put("a/x");
    const reflected = await start({ trim: (object) => ({ ...object, data: {} }) });
    server.put("a/y");
    await clock.advance(0);
    for (const object of reflected.store.list()) {
      expect(object.metadata.managedFields).toBeUndefined();
      expect(object.data).toEqual({});
    }
  });

  test("a trim that throws costs memory, not the object", async () => {
    server.put("a/x");
    const reflected = await start({
      trim: () => {
        throw new Error("oh");
      },
    });
    expect(isEqual(reflected)).toBe(true);
    expect(troubles).toEqual(["configmaps: trim failed"]);
  });

  test("whoever waits for the sync may stop waiting", async () => {
    server.faults.list = () => true;
    const reflected = await start();
    const patience = new AbortController();
    const waiting = reflected.waitForSync(patience.signal).catch(String);
    patience.abort(new Error("no longer"));
    expect(await waiting).toBe("Error: no longer");
  });
});

describe("in each of these, the store equals the server again within a minute", () => {
  test("a watch freezes right after it began: its connection is given up", async () => {
    const reflected = await start();
    server.freeze();
    server.put("a/x");
    expect(await timeToEqual(reflected)).toBeLessThanOrEqual(36_000);
  });

  test("a watch that is asked to end after 20 to 30 seconds is dead 5 seconds later", () => {
    const { watchMaxMs, graceMs, answerMs, restartMinMs, restartMaxMs } = productionTiming;
    // Noticed, then a first attempt that is not answered either, then a second one that is.
    expect(watchMaxMs + graceMs + restartMinMs + answerMs + restartMinMs * 2).toBeLessThan(60_000);
    // The end of a long outage is noticed by the next attempt, if the last one hangs as long as it may.
    expect(answerMs + restartMaxMs).toBeLessThan(60_000);
  });

  for (const method of ["put", "remove"] as const) {
    test(`an event is lost (${method}) and later ones are not`, async () => {
      server.put("a/x");
      const reflected = await start();
      server.faults.drop = ({ key }) => key === "a/x";
      server[method]("a/x");
      await clock.advance(0);
      delete server.faults.drop;
      server.put("a/later");
      await clock.advance(0);
      expect(isEqual(reflected)).toBe(false);
      expect(await timeToEqual(reflected)).toBeLessThanOrEqual(31_000);
      expect(reflected.counts).toMatchObject({ lists: 2, differences: 1 });
    });
  }

  test("no event ever comes", async () => {
    const reflected = await start();
    server.faults.drop = () => true;
    for (let minute = 0; minute < 10; minute++) {
      server.put("a/x");
      server.put(`a/${minute}`);
      await timeToEqual(reflected);
    }
  });

  test("the server has forgotten where the watch was, and what was deleted meanwhile", async () => {
    server.put("a/x");
    server.put("a/y");
    const reflected = await start();
    const gone: string[] = [];
    reflected.store.subscribe(({ key, after }) => after ?? gone.push(key));
    server.freeze();
    server.remove("a/x");
    server.forget();
    await timeToEqual(reflected);
    expect(gone).toEqual(["a/x"]);
  });

  test("a wall clock that is set does not make a store out of date, nor hide that it is", async () => {
    const reflected = await start();
    await clock.advance(60_000);
    clock.stepWallClock(86_400_000);
    expect(reflected.healthy).toBe(true);
    server.faults.down = true;
    server.cut();
    clock.stepWallClock(-2 * 86_400_000);
    await clock.advance(300_000);
    expect(reflected.healthy).toBe(false);
  });

  test("the server is away for five minutes, and forgets", async () => {
    server.put("a/x");
    const reflected = await start();
    server.faults.down = true;
    server.cut();
    await clock.advance(300_000);
    expect(reflected.healthy).toBe(false);
    server.remove("a/x");
    server.put("a/y");
    server.forget();
    server.faults.down = false;
    expect(await timeToEqual(reflected)).toBeLessThanOrEqual(25_000);
    expect(reflected.healthy).toBe(true);
  });

  test("watches end at once, for ever: the store follows by lists, and does not hammer the server", async () => {
    const reflected = await start();
    server.faults.watch = () => "end";
    server.cut();
    await clock.advance(300_000);
    server.put("a/x");
    await timeToEqual(reflected);
    expect(reflected.counts.watches).toBeLessThan(60);
  });

  test("a restored server counts from the past", async () => {
    for (let i = 0; i < 50; i++) server.put("a/x");
    const reflected = await start();
    server.restoreBackup();
    server.put("a/x");
    await timeToEqual(reflected);
    server.put("a/x");
    await clock.advance(0);
    expect(isEqual(reflected)).toBe(true);
  });

  test("a comparison that fails does not stop the watch", async () => {
    const reflected = await start();
    server.faults.list = () => true;
    await clock.advance(120_000);
    server.put("a/x");
    await clock.advance(0);
    expect(isEqual(reflected)).toBe(true);
    expect(troubles).toContain("configmaps: the comparison failed");
    expect(reflected.healthy).toBe(true);
  });
});

describe("health", () => {
  test("is bad before the first list", async () => {
    server.faults.list = () => true;
    const reflected = await start();
    expect(reflected.healthy).toBe(false);
  });

  test("is bad once nothing was heard for longer than any watch may be silent", async () => {
    const reflected = await start();
    server.faults.down = true;
    server.freeze();
    await clock.advance(30_000);
    expect(reflected.healthy).toBe(true);
    await clock.advance(10_000);
    expect(reflected.healthy).toBe(false);
  });
});

test("a listener that throws is reported, and all goes on", async () => {
  const reflected = await start();
  reflected.store.subscribe(() => {
    throw new Error("oh");
  });
  server.put("a/x");
  server.put("a/y");
  await clock.advance(0);
  expect(reflected.store.size).toBe(2);
  expect(troubles).toEqual(["configmaps: a listener failed", "configmaps: a listener failed"]);
});

test("whatever happens for ten minutes, a minute later the store equals the server and every change was told", async () => {
  for (let seed = 1; seed <= 100; seed++) {
    clock = manualClock();
    server = memoryServer(clock);
    const random = seeded(seed);
    const reflected = await start({ random });
    const mirror = new Map<string, string>();
    reflected.store.subscribe(({ key, after }) => {
      if (after) mirror.set(key, after.metadata.resourceVersion ?? "");
      else mirror.delete(key);
    });
    await weather(random);
    server.calm();
    await timeToEqual(reflected);
    expect(mirror).toEqual(
      new Map(
        reflected.store.list().map((object) => [`a/${object.metadata.name}`, object.metadata.resourceVersion ?? ""]),
      ),
    );
    stop.abort();
    await clock.advance(0);
    stop = new AbortController();
  }
});

/** Changes and faults in any order. */
async function weather(random: () => number): Promise<void> {
  const name = (): string => `a/${Math.floor(random() * 5)}`;
  const steps = [
    () => server.put(name()),
    () => server.put(name()),
    () => server.remove(name()),
    () => server.freeze(),
    () => server.cut(),
    () => server.forget(),
    () => (server.faults.drop = () => random() < 0.5),
    () => (server.faults.down = random() < 0.5),
    () => (server.faults.list = () => random() < 0.5),
    () => (server.faults.watch = () => (random() < 0.5 ? "end" : undefined)),
    () => server.calm(),
  ];
  for (const until = clock.now() + 600_000; clock.now() < until; await clock.advance(random() * 10_000)) {
    steps[Math.floor(random() * steps.length)]?.();
  }
}

/** mulberry32 */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}
