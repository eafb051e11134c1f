/** The reflector with its production timing, an in-memory API server and a manual clock. */
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";

import { Archive } from "./archive.ts";
import { builtin } from "../client/builtin.ts";
import type { Client, ListOptions, WatchOptions } from "../client/client.ts";
import { ApiError } from "../client/errors.ts";
import { sleep } from "../clock.ts";
import type { KubeObject, Resource } from "../resource.ts";
import { replaySeconds } from "./differences.ts";
import { productionTiming, type FeedTiming } from "./timing.ts";
import { manualClock, type ManualClock } from "../manual-clock.ts";
import { memoryServer, type ConfigMap, type MemoryServer } from "../../testing/memory-server.ts";
import { testSeed } from "../../testing/seed.ts";
import { seededRandom } from "../../testing/seeded-random.ts";
import { reflector, type ReflectorOptions } from "./reflector.ts";
import type { Change, Reflector } from "./store.ts";

let clock: ManualClock;
let server: MemoryServer;
let stop: AbortController;
let errors: string[];
let running: Promise<void>[];
/** Of all reflectors of a test. */
let timing: Partial<FeedTiming>;
let random: () => number;

beforeEach(() => {
  clock = manualClock();
  server = memoryServer(clock);
  stop = new AbortController();
  errors = [];
  running = [];
  timing = {};
  random = seededRandom(1).next;
});
afterEach(async () => {
  stop.abort();
  await clock.advance(0);
  await Promise.all(running);
  expect(clock.pending).toBe(0);
});

async function start(options: ReflectorOptions<ConfigMap> = {}, client = server.client): Promise<Reflector<ConfigMap>> {
  const started = reflector<ConfigMap>(client, builtin.configMaps, {
    clock,
    random,
    onError: (_, what) => errors.push(what),
    ...options,
    timing: { ...timing, ...options.timing },
  });
  running.push(started.run(stop.signal));
  await clock.advance(10);
  return started;
}

const versions = (objects: readonly ConfigMap[]): string[] =>
  objects.map(({ metadata }) => `${metadata.namespace}/${metadata.name}@${metadata.resourceVersion}`).toSorted();

function isInSync(reflected: Reflector<ConfigMap>): boolean {
  return Bun.deepEquals(versions(reflected.store.list()), versions(server.objects()));
}

/** Milliseconds until the store is in sync with the server. */
async function timeToSync(reflected: Reflector<ConfigMap>, limitMs = 60_000): Promise<number> {
  const from = clock.now();
  while (!isInSync(reflected)) {
    expect(clock.now() - from).toBeLessThan(limitMs);
    await clock.advance(100);
  }
  return clock.now() - from;
}

/** Whether a comparison reads with this watch what has changed. */
const isReplay = ({ serverTimeoutSeconds }: Pick<WatchOptions, "serverTimeoutSeconds">): boolean =>
  serverTimeoutSeconds === replaySeconds;

describe("normal operation", () => {
  test("the first list fills the store, and events keep it in sync", async () => {
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
    expect(isInSync(reflected)).toBe(true);
    expect(changes.map(({ key, before, after }) => [key, before !== undefined, after !== undefined])).toEqual([
      ["a/x", true, true],
      ["a/y", false, true],
      ["a/x", true, false],
    ]);
  });

  test("an hour without changes needs one list, reports no change and is always healthy", async () => {
    for (let i = 0; i < 10; i++) server.put(`a/${i}`);
    const reflected = await start();
    let reported = 0;
    reflected.store.subscribe(() => reported++);
    for (let second = 0; second < 3600; second++) {
      await clock.advance(1000);
      expect(reflected.healthy).toBe(true);
    }
    expect(errors).toEqual([]);
    expect(reported).toBe(0);
    expect(reflected.counts).toMatchObject({ lists: 1, differences: 0 });
    // Two requests a minute at most: of eight kinds, fewer than 600 an hour.
    expect(reflected.counts.watches).toBeWithin(2, 4);
    expect(reflected.counts.comparisons).toBeWithin(60, 85);
  });

  test("each change is reported once, and not again by a later comparison", async () => {
    const reflected = await start();
    const reported: string[] = [];
    reflected.store.subscribe(({ key, after }) => reported.push(`${key}@${after?.metadata.resourceVersion ?? "gone"}`));
    server.put("a/x");
    server.put("a/x");
    server.remove("a/x");
    server.put("a/y");
    await clock.advance(300_000);
    expect(reported).toEqual(["a/x@1", "a/x@2", "a/x@gone", "a/y@4"]);
  });

  test("a list of namespaces, one of which is slow to list", async () => {
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

  test("an empty list of namespaces is rejected", () => {
    expect(() => reflector(server.client, builtin.configMaps, { namespaces: [] })).toThrow("at least one");
  });

  test("objects are trimmed by the reflector and by the caller", async () => {
    server.put("a/x");
    const reflected = await start({ trim: (object) => ({ ...object, data: {} }) });
    server.put("a/y");
    await clock.advance(0);
    for (const object of reflected.store.list()) {
      expect(object.metadata.managedFields).toBeUndefined();
      expect(object.data).toEqual({});
    }
  });

  test("an object for which trim throws is stored anyway", async () => {
    server.put("a/x");
    const reflected = await start({
      trim: () => {
        throw new Error("oh");
      },
    });
    expect(isInSync(reflected)).toBe(true);
    expect(errors).toEqual(["configmaps: trim failed"]);
  });

  test("waiting for the sync can be aborted", async () => {
    server.faults.list = () => true;
    const reflected = await start();
    const waitLimit = new AbortController();
    const waiting = reflected.waitForSync(waitLimit.signal).catch(String);
    waitLimit.abort(new Error("no longer"));
    expect(await waiting).toBe("Error: no longer");
  });
});

/** For a large store, most comparisons read only what has changed. */
const sizes = [
  ["a small store", {}],
  ["a large store", { largeSize: 0 }],
] as const;

describe.each(sizes)("%s is in sync again within a minute when", (_, ofSize) => {
  beforeEach(() => {
    timing = ofSize;
  });

  test("a watch freezes right after it started: its connection is abandoned", async () => {
    server.put("a/first");
    const reflected = await start();
    server.freeze();
    server.put("a/x");
    expect(await timeToSync(reflected)).toBeLessThanOrEqual(36_000);
  });

  test("a watch of a kind that has not changed for an hour is frozen", async () => {
    server.put("a/first");
    const reflected = await start();
    await clock.advance(3_600_000);
    server.freeze();
    server.put("a/x");
    expect(await timeToSync(reflected)).toBeLessThanOrEqual(60_000);
  });

  test("an event of such a kind is lost, and a later one is not", async () => {
    server.put("a/x");
    const reflected = await start();
    await clock.advance(3_600_000);
    server.faults.drop = ({ key }, watch) => key === "a/x" && !isReplay(watch);
    server.put("a/x");
    await clock.advance(0);
    delete server.faults.drop;
    server.put("a/later");
    expect(await timeToSync(reflected)).toBeLessThanOrEqual(60_000);
  });

  test("the production timing finds a broken watch within a minute", () => {
    const { quietCompareMaxMs, settleMs, answerMs, restartMinMs, restartMaxMs } = productionTiming;
    expect(quietCompareMaxMs + replaySeconds * 1000 + settleMs + restartMinMs).toBeLessThan(60_000);
    // After a long outage, the next attempt succeeds, even if the previous one hung until its deadline.
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
      expect(isInSync(reflected)).toBe(false);
      expect(await timeToSync(reflected)).toBeLessThanOrEqual(33_000);
      expect(reflected.counts).toMatchObject({ lists: 1, differences: 1 });
    });
  }

  test("many events are lost: the store is listed again", async () => {
    server.put("a/x");
    const reflected = await start();
    server.faults.drop = () => true;
    for (let i = 0; i < 100; i++) server.put(`a/${i}`);
    await clock.advance(0);
    delete server.faults.drop;
    expect(await timeToSync(reflected)).toBeLessThanOrEqual(33_000);
    expect(reflected.counts).toMatchObject({ lists: 2, differences: 1 });
  });

  test("an event is lost, and something between the operator and the server ends every watch after 10 seconds", async () => {
    server.put("a/x");
    const reflected = await start({ timing: { watchMinMs: 10_000, watchMaxMs: 10_000 } });
    await clock.advance(3_600_000);
    server.faults.drop = () => true;
    server.put("a/x");
    await clock.advance(0);
    delete server.faults.drop;
    // The end of a watch may interrupt a comparison, which is then repeated.
    expect(await timeToSync(reflected)).toBeLessThanOrEqual(60_000);
    expect(reflected.counts.comparisons).toBeLessThan(90);
  });

  test("the resource version of the watch has expired and an object was deleted", async () => {
    server.put("a/x");
    server.put("a/y");
    const reflected = await start();
    const deleted: string[] = [];
    reflected.store.subscribe(({ key, after }) => after ?? deleted.push(key));
    server.freeze();
    server.remove("a/x");
    server.forget();
    await timeToSync(reflected);
    expect(deleted).toEqual(["a/x"]);
  });

  test("setting the wall clock neither makes a store unhealthy nor hides that it is", async () => {
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

  test("the server is down for five minutes and drops its watch history", async () => {
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
    expect(await timeToSync(reflected)).toBeLessThanOrEqual(25_000);
    expect(reflected.healthy).toBe(true);
  });

  test("every watch ends immediately: the store uses lists, without flooding the server", async () => {
    const reflected = await start();
    server.faults.watch = () => "end";
    server.cut();
    await clock.advance(300_000);
    server.put("a/x");
    await timeToSync(reflected);
    expect(reflected.counts.watches).toBeLessThan(60);
  });

  test("a comparison that fails does not stop the watch", async () => {
    const reflected = await start();
    server.faults.list = () => true;
    await clock.advance(120_000);
    server.put("a/x");
    await clock.advance(0);
    expect(isInSync(reflected)).toBe(true);
    expect(errors).toContain("configmaps: comparison failed");
    expect(reflected.healthy).toBe(true);
  });
});

test("a small store is in sync again within a minute although no event ever arrives", async () => {
  const reflected = await start();
  server.faults.drop = () => true;
  for (let minute = 0; minute < 10; minute++) {
    server.put("a/x");
    server.put(`a/${minute}`);
    await timeToSync(reflected);
  }
});

describe("etcd was restored from a backup", () => {
  test("the versions start from the past", async () => {
    for (let i = 0; i < 50; i++) server.put("a/x");
    const reflected = await start();
    server.restoreBackup();
    server.put("a/x");
    await timeToSync(reflected);
    server.put("a/x");
    await clock.advance(0);
    expect(isInSync(reflected)).toBe(true);
  });

  describe("an object is in the same version again with other content", () => {
    const changeInVersion8 = (value: string): void => {
      while (server.version < 7) server.put("a/y");
      server.put("a/x", value);
    };
    const valueOf = (reflected: Reflector<ConfigMap>): string | undefined =>
      reflected.store.get("a/x")?.data?.["value"];

    beforeEach(() => {
      changeInVersion8("lost");
      while (server.version < 12) server.put("a/y");
    });

    test.each(sizes)("before the next comparison, because the connection of %s broke", async (_, ofSize) => {
      timing = ofSize;
      const reflected = await start();
      server.restoreBackup();
      server.cut();
      await clock.advance(1000);
      changeInVersion8("restored");
      await clock.advance(1000);
      expect(valueOf(reflected)).toBe("restored");
    });

    test.each(sizes)("after the API server ended the watch of %s without an error", async (_, ofSize) => {
      timing = ofSize;
      const reflected = await start();
      await clock.advance(600_000);
      server.restoreBackup();
      server.end();
      changeInVersion8("restored");
      await clock.advance(60_000);
      expect(valueOf(reflected)).toBe("restored");
      expect(errors).toEqual([]);
    });

    test.each(sizes)(
      "because it was created again, and %s is compared when all versions are the same",
      async (_, ofSize) => {
        timing = ofSize;
        const reflected = await start();
        server.restoreBackup();
        server.remove("a/x");
        changeInVersion8("restored");
        while (server.version < 12) server.put("a/y");
        server.cut();
        await clock.advance(5000);
        expect(isInSync(reflected)).toBe(true);
        expect(valueOf(reflected)).toBe("restored");
      },
    );

    test("after the next comparison", async () => {
      const reflected = await start();
      server.restoreBackup();
      await clock.advance(35_000);
      changeInVersion8("restored");
      await clock.advance(1000);
      expect(valueOf(reflected)).toBe("restored");
    });

    test.each([
      ["before the list", (): void => undefined],
      ["although the end of the watch interrupted the comparison", (): void => server.cut()],
    ])("after a comparison, and the former version is reached again %s", async (_, meanwhile) => {
      const reflected = await start();
      const { comparisons } = reflected.counts;
      server.restoreBackup();
      changeInVersion8("restored");
      while (reflected.counts.comparisons === comparisons) await clock.advance(100);
      meanwhile();
      while (server.version < 20) server.put("a/y");
      await clock.advance(60_000);
      expect(valueOf(reflected)).toBe("restored");
    });

    test.each(sizes)("before the server can be reached again, with %s", async (_, ofSize) => {
      timing = ofSize;
      const reflected = await start();
      const changes: Change<ConfigMap>[] = [];
      server.faults.down = true;
      server.cut();
      await clock.advance(60_000);
      server.restoreBackup();
      changeInVersion8("restored");
      reflected.store.subscribe((change) => changes.push(change));
      server.faults.down = false;
      await clock.advance(15_000);
      expect(valueOf(reflected)).toBe("restored");
      expect(changes.find(({ key }) => key === "a/x")).toMatchObject({ before: { data: { value: "lost" } } });
    });
  });
});

test.each(sizes)("events that arrive while %s is compared are no difference", async (_, ofSize) => {
  timing = ofSize;
  const reflected = await start();
  for (let i = 0; i < 600; i++) {
    server.put(`a/${i % 7}`);
    if (i % 3 === 0) server.remove(`a/${i % 5}`);
    await clock.advance(517);
  }
  expect(isInSync(reflected)).toBe(true);
  expect(reflected.counts).toMatchObject({ lists: 1, differences: 0 });
  expect(reflected.counts.comparisons).toBeGreaterThan(9);
});

describe("a large store", () => {
  /** How often everything was compared, and what has changed. */
  let complete: number;
  let replays: number;

  async function untilCompared(): Promise<void> {
    const before = complete + replays;
    const isNew = (): boolean => complete + replays > before;
    while (!isNew()) await clock.advance(100);
  }

  async function startLarge(): Promise<Reflector<ConfigMap>> {
    timing = { largeSize: 50 };
    for (let i = 0; i < 60; i++) server.put(`a/${i}`);
    const reflected = await start();
    complete = 0;
    replays = 0;
    server.faults.list = ({ fieldSelector }) => {
      if (fieldSelector === undefined) complete++;
      return false;
    };
    server.faults.watch = (options) => {
      if (isReplay(options)) replays++;
      return undefined;
    };
    return reflected;
  }

  const lose = async (): Promise<void> => {
    server.faults.drop = () => true;
    server.put("a/59");
    server.put("a/new");
    server.remove("a/0");
    await clock.advance(0);
    delete server.faults.drop;
  };

  test("is compared by reading what has changed, and everything every two hours", async () => {
    const reflected = await startLarge();
    for (let minute = 0; minute < 105; minute++) await clock.advance(60_000);
    expect(complete).toBe(0);
    expect(reflected.counts.comparisons).toBeWithin(105, 135);
    for (let minute = 0; minute < 20; minute++) await clock.advance(60_000);
    expect(complete).toBe(1);
    expect(server.pages).toBe(2);
    for (let minute = 0; minute < 60; minute++) await clock.advance(60_000);
    expect(complete).toBe(1);
    expect(reflected.counts).toMatchObject({ lists: 1, differences: 0 });
    expect(errors).toEqual([]);
  });

  test("needs no complete comparison to find lost events; one follows", async () => {
    const reflected = await startLarge();
    await lose();
    expect(isInSync(reflected)).toBe(false);
    let read = 0;
    server.faults.list = ({ fieldSelector }) => {
      if (fieldSelector === undefined) complete++;
      else read++;
      return false;
    };
    expect(await timeToSync(reflected)).toBeLessThanOrEqual(33_000);
    expect({ complete, read }).toEqual({ complete: 0, read: 2 });
    expect(reflected.counts).toMatchObject({ lists: 1, differences: 1 });
    await clock.advance(60_000);
    expect(complete).toBe(1);
  });

  test("notices that its connections are dead, even while it reads what has changed", async () => {
    const reflected = await startLarge();
    await untilCompared();
    await clock.advance(500);
    server.freeze();
    server.put("a/1");
    expect(await timeToSync(reflected)).toBeLessThanOrEqual(60_000);
  });

  test.each([
    ["reads what has changed", (): void => undefined],
    ["is compared completely", (): void => server.cut()],
  ])("finds a lost event of an object whose former change was reported while it %s", async (_, before) => {
    const reflected = await startLarge();
    before();
    server.faults.listMs = 1000;
    await untilCompared();
    server.put("a/1");
    await clock.advance(100);
    server.faults.drop = () => true;
    server.put("a/1");
    await clock.advance(0);
    delete server.faults.drop;
    expect(await timeToSync(reflected)).toBeLessThanOrEqual(60_000);
  });

  const refuse = (): never => {
    throw new ApiError("watch", { status: 500, reason: "InternalError", message: "" });
  };

  test("is not compared completely each time the API server refuses to report the changes", async () => {
    await startLarge();
    server.faults.listMs = 3000;
    server.faults.watch = (options) => (isReplay(options) ? refuse() : undefined);
    for (let second = 0; second < 3600; second++) await clock.advance(1000);
    expect(complete).toBeWithin(10, 25);
  });

  test("whose events get lost twice is in sync when everything was compared", async () => {
    const reflected = await startLarge();
    server.faults.drop = ({ key }) => key === "a/7";
    server.put("a/7");
    await clock.advance(120_000);
    expect(isInSync(reflected)).toBe(false);
    await clock.advance(7_200_000);
    expect(isInSync(reflected)).toBe(true);
  });

  test.each([
    ["the API server no longer has the changes", (): void => server.forget()],
    ["a connection broke", (): void => server.cut()],
  ])("is compared completely if %s", async (_, happen) => {
    const reflected = await startLarge();
    await lose();
    server.put("a/later");
    await clock.advance(0);
    happen();
    await clock.advance(30_000);
    expect(complete).toBeGreaterThan(0);
    expect(await timeToSync(reflected)).toBeLessThanOrEqual(31_000);
  });

  test.each([
    ["the API server refuses", refuse],
    ["something ends at once", () => "end" as const],
  ])(
    "finds a lost event within a minute after a replay that %s, before it can be compared completely",
    async (_, fail) => {
      const reflected = await startLarge();
      server.faults.listMs = 9000;
      server.cut();
      await untilCompared();
      // The next complete comparison begins after the longest rest.
      server.faults.listMs = 1;
      let failed = 0;
      server.faults.watch = (options) => (isReplay(options) && failed++ === 0 ? fail() : undefined);
      const hasFailed = (): boolean => failed > 0;
      while (!hasFailed()) await clock.advance(100);
      await clock.advance(5000);
      await lose();
      expect(await timeToSync(reflected)).toBeLessThanOrEqual(60_000);
      await clock.advance(200_000);
      expect(complete).toBe(1);
      await clock.advance(160_000);
      expect(complete).toBe(2);
    },
  );

  test("stays healthy while the API server refuses to report the changes", async () => {
    const reflected = await startLarge();
    server.faults.listMs = 15_000;
    server.faults.watch = (options) => (isReplay(options) ? refuse() : undefined);
    for (let second = 0; second < 3600; second++) {
      await clock.advance(1000);
      expect(reflected.healthy).toBe(true);
    }
  });

  test("finds a lost event although something ends each replay at once, without an error", async () => {
    const reflected = await startLarge();
    server.faults.watch = (options) => (isReplay(options) ? "end" : undefined);
    await lose();
    expect(await timeToSync(reflected)).toBeLessThanOrEqual(33_000);
  });

  test("is not compared completely each time the changes have expired", async () => {
    await startLarge();
    server.faults.listMs = 3000;
    for (let second = 0; second < 3600; second++) {
      server.put("a/1");
      await clock.advance(0);
      server.forget();
      await clock.advance(1000);
    }
    // Three seconds are 2 % of 150 s.
    expect(complete).toBeWithin(10, 25);
  });

  test.each([1, 2, 3])("is not changed by an API server that knows only %i of four changes", async (known) => {
    const reflected = await startLarge();
    const changes: string[] = [];
    reflected.store.subscribe(({ key }) => changes.push(key));
    const from = server.version;
    server.put("a/1");
    server.put("a/1");
    server.remove("a/2");
    server.put("a/2");
    await clock.advance(0);
    server.faults.behind = ({ version }) => version > from + known;
    await clock.advance(120_000);
    expect(replays).toBeGreaterThan(2);
    expect(reflected.counts).toMatchObject({ lists: 1, differences: 0 });
    server.cut();
    await clock.advance(60_000);
    expect(changes).toEqual(["a/1", "a/1", "a/2", "a/2"]);
  });

  test.each([1, 2, 3, 4])("does not go back to what an API server knew after %i of five changes", async (known) => {
    const reflected = await startLarge();
    const changes: string[] = [];
    reflected.store.subscribe(({ key, after }) => changes.push(`${key}${after ? "" : " deleted"}`));
    const from = server.version;
    server.put("a/temporary");
    server.remove("a/temporary");
    server.put("a/2");
    server.put("a/2");
    server.remove("a/2");
    await clock.advance(0);
    server.faults.behind = ({ version }) => version > from + known;
    await clock.advance(120_000);
    expect(changes).toEqual(["a/temporary", "a/temporary deleted", "a/2", "a/2", "a/2 deleted"]);
    expect(reflected.counts).toMatchObject({ lists: 1, differences: 0 });
  });

  test("is in sync again if an event gets lost, although the API server is too late to report it again", async () => {
    const reflected = await startLarge();
    server.faults.drop = ({ key }) => key === "a/1";
    server.put("a/1");
    server.put("a/2");
    await clock.advance(0);
    delete server.faults.drop;
    server.faults.behind = () => true;
    expect(await timeToSync(reflected)).toBeLessThanOrEqual(60_000);
  });
});

describe("health", () => {
  test("is false before the first list", async () => {
    server.faults.list = () => true;
    const reflected = await start();
    expect(reflected.healthy).toBe(false);
  });

  test("is false when nothing was received for longer than a watch may be silent", async () => {
    const reflected = await start();
    server.faults.down = true;
    server.freeze();
    await clock.advance(50_000);
    expect(reflected.healthy).toBe(true);
    await clock.advance(15_000);
    expect(reflected.healthy).toBe(false);
  });
});

describe("if a comparison takes long", () => {
  test.each([1500, 3000, 15_000])("such as %i ms, the store stays healthy, and is still compared", async (ms) => {
    const reflected = await start();
    server.faults.listMs = ms;
    for (let second = 0; second < 3600; second++) {
      await clock.advance(1000);
      expect(reflected.healthy).toBe(true);
    }
    expect(reflected.counts.comparisons).toBeWithin(11, 50);
  });

  test("the store stays healthy after the end of the watch interrupts one", async () => {
    const reflected = await start();
    server.faults.listMs = 15_000;
    while (reflected.counts.comparisons === 0) await clock.advance(1000);
    // The next one begins after the longest rest.
    await clock.advance(305_000);
    server.cut();
    for (let second = 0; second < 600; second++) {
      await clock.advance(1000);
      expect(reflected.healthy).toBe(true);
    }
    expect(reflected.counts.comparisons).toBeGreaterThan(1);
  });

  test.each([
    ["that completes", 5000],
    ["that the end of the watch interrupts", 15_000],
  ])("connections that keep breaking do not cause one %s each time", async (_, ms) => {
    let begun = 0;
    const reflected = await start();
    server.faults.listMs = ms;
    server.faults.list = () => {
      begun++;
      return false;
    };
    for (let breaks = 0; breaks < 70; breaks++) {
      await clock.advance(13_000);
      server.cut();
    }
    expect(begun).toBeWithin(3, 8);
    expect(reflected.counts.lists).toBe(1);
  });

  test("a watch that the server rejects does not cause one each time", async () => {
    let [begun, rejected] = [-1, 0];
    server.faults.list = () => {
      begun++;
      return false;
    };
    // oxlint-disable-next-line require-yield -- it throws before it yields
    async function* watch(_: unknown, { signal }: WatchOptions): AsyncGenerator<never> {
      await sleep(clock, 50, signal);
      rejected++;
      throw new ApiError("watch", { status: 429, reason: "TooManyRequests", message: "" });
    }
    await start({}, { ...server.client, watch });
    await clock.advance(300_000);
    expect(rejected).toBeGreaterThan(20);
    expect(begun).toBeLessThan(3);
  });

  test("the store is still unhealthy when the server is down", async () => {
    const reflected = await start();
    server.faults.listMs = 15_000;
    await clock.advance(600_000);
    server.faults.down = true;
    server.freeze();
    await clock.advance(330_000);
    expect(reflected.healthy).toBe(false);
  });
});

describe("a list in pages", () => {
  const expired = new ApiError("list", { status: 410, reason: "Expired", message: "" });
  const failed = new ApiError("list", { status: 500, reason: "InternalError", message: "" });
  /** Called after the first page of each list. */
  let afterPage: () => void;
  let beforeRun: () => void;
  /** The page size of each list of whole objects. */
  let requestedSizes: (number | undefined)[];
  let reflected: Reflector<ConfigMap>;

  beforeEach(() => {
    requestedSizes = [];
    afterPage = () => {};
    beforeRun = () => {};
  });

  async function startPaged(archive: (object: ConfigMap) => number | undefined = () => 1000): Promise<void> {
    const pages: Client["pages"] = async function* <T extends KubeObject>(
      resource: Resource<T>,
      options: ListOptions<T> = {},
    ) {
      if (resource.view === undefined) requestedSizes.push(options.pageSize);
      for await (const page of server.client.pages<T>(resource, { pageSize: 1, ...options })) {
        yield page;
        afterPage();
      }
    };
    const client = { ...server.client, pages };
    const onError = (_: unknown, what: string): void => void errors.push(what);
    reflected = reflector<ConfigMap>(client, builtin.configMaps, { clock, random, archive, onError });
    beforeRun();
    running.push(reflected.run(stop.signal));
    await clock.advance(15_000);
  }

  for (const [what, error] of [
    ["the server fails", failed],
    ["the snapshot expires", expired],
  ] as const) {
    test(`${what} during the first list: what was deleted meanwhile is not kept`, async () => {
      server.put("a/x");
      server.put("a/y");
      let failures = 3;
      afterPage = () => {
        if (failures-- <= 0) return;
        server.remove("a/x");
        server.put("a/z");
        throw error;
      };
      await startPaged();
      expect(reflected.store.hasSynced).toBe(true);
      expect(isInSync(reflected)).toBe(true);
      expect(reflected.counts.lists).toBe(1);
    });
  }

  test("one whose snapshot expires is repeated in pages, and in a single page when that keeps happening", async () => {
    server.put("a/x");
    server.put("a/y");
    afterPage = () => {
      if (requestedSizes.at(-1) !== 0) throw expired;
    };
    await startPaged();
    expect(requestedSizes).toEqual([undefined, undefined, undefined, 0]);
    expect(isInSync(reflected)).toBe(true);
  });

  test("one in a single page that fails is repeated in pages", async () => {
    server.put("a/x");
    server.put("a/y");
    afterPage = () => {
      if (requestedSizes.length <= 3) throw expired;
      if (requestedSizes.at(-1) === 0) throw failed;
    };
    await startPaged();
    expect(requestedSizes).toEqual([undefined, undefined, undefined, 0, undefined]);
    expect(isInSync(reflected)).toBe(true);
  });

  test("the first one is stored page by page, and a later one at once", async () => {
    const seen: string[][] = [];
    afterPage = () => seen.push(versions(reflected.store.list()));
    server.put("a/x");
    server.put("a/y");
    await startPaged();
    expect(seen).toEqual([["a/x@1"], ["a/x@1", "a/y@2"]]);

    server.freeze();
    server.remove("a/x");
    server.put("a/z");
    server.forget();
    server.cut();
    await clock.advance(5000);
    expect(seen.slice(2)).toEqual([
      ["a/x@1", "a/y@2"],
      ["a/x@1", "a/y@2"],
    ]);
    expect(isInSync(reflected)).toBe(true);
  });

  test("the archived objects of the first one are not reported, and so not unpacked", async () => {
    const unpack = spyOn(Archive.prototype, "unpack");
    const reported: string[] = [];
    beforeRun = () => {
      reflected.store.subscribe(({ key, before, after }) =>
        reported.push(`${key} ${String(!!before)} ${String(!!after)}`),
      );
    };
    server.put("a/x");
    server.put("a/y");
    await startPaged(({ metadata }) => (metadata.name === "x" ? 1000 : undefined));
    const unpacked = unpack.mock.calls.length;
    server.remove("a/x");
    await clock.advance(0);
    unpack.mockRestore();
    expect(unpacked).toBe(0);
    expect(reported).toEqual(["a/y false true", "a/x true false"]);
  });

  test("objects that were archived by one that failed take no memory", async () => {
    const used = [spyOn(Archive.prototype, "pack"), spyOn(Archive.prototype, "release")];
    server.put("a/x");
    server.put("a/y");
    let failures = 3;
    afterPage = () => {
      if (failures-- <= 0) return;
      server.put("a/x");
      throw failed;
    };
    await startPaged();
    const [packed = 0, released = 0] = used.map(({ mock }) => mock.calls.length);
    for (const spied of used) spied.mockRestore();
    expect(isInSync(reflected)).toBe(true);
    expect(packed - released).toBe(2);
    expect(packed).toBeGreaterThan(2);
  });
});

test("a listener that throws is reported, and the reflector continues", async () => {
  const reflected = await start();
  reflected.store.subscribe(() => {
    throw new Error("oh");
  });
  server.put("a/x");
  server.put("a/y");
  await clock.advance(0);
  expect(reflected.store.size).toBe(2);
  expect(errors).toEqual(["configmaps: a listener failed", "configmaps: a listener failed"]);
});

const firstSeed = testSeed("reflector");

test.each([
  ["a store", "a minute", {}, 60_000],
  // The same event may get lost again when the changes are read.
  ["a large store", "the time after which everything is compared", { largeSize: 0, compareAllMs: 600_000 }, 700_000],
] as const)(
  "after ten minutes of random faults, %s is in sync within %s and every change was reported",
  async (...args) => {
    const [, , ofSize, limitMs] = args;
    timing = ofSize;
    for (let seed = firstSeed; seed < firstSeed + 100; seed++) {
      clock = manualClock();
      server = memoryServer(clock);
      random = seededRandom(seed).next;
      const reflected = await start();
      const mirror = new Map<string, string>();
      reflected.store.subscribe(({ key, after }) => {
        if (after) mirror.set(key, after.metadata.resourceVersion ?? "");
        else mirror.delete(key);
      });
      await randomEvents();
      server.clearFaults();
      await timeToSync(reflected, limitMs);
      expect(mirror).toEqual(
        new Map(
          reflected.store.list().map((object) => [`a/${object.metadata.name}`, object.metadata.resourceVersion ?? ""]),
        ),
      );
      stop.abort();
      await clock.advance(0);
      stop = new AbortController();
    }
  },
);

test("after random faults, a large store is in sync within a minute, if only its watch loses events", async () => {
  timing = { largeSize: 0 };
  for (let seed = 1; seed <= 30; seed++) {
    clock = manualClock();
    server = memoryServer(clock);
    random = seededRandom(seed).next;
    const reflected = await start();
    for (let round = 0; round < 5; round++) {
      await randomSteps(300_000, [
        ...changes,
        () => server.freeze(),
        () => server.cut(),
        () => server.end(),
        () => server.forget(),
        () => (server.faults.drop = (_, watch) => !isReplay(watch) && random() < 0.5),
        () => {
          const known = server.version - Math.floor(random() * 5);
          server.faults.behind = ({ version }) => version > known;
        },
        () => server.clearFaults(),
      ]);
      server.clearFaults();
      await timeToSync(reflected);
    }
    stop.abort();
    await clock.advance(0);
    stop = new AbortController();
  }
});

const randomName = (): string => `a/${Math.floor(random() * 5)}`;
const changes = [
  () => server.put(randomName()),
  () => server.put(randomName()),
  () => server.remove(randomName()),
] as const;

/** Changes and faults in random order. */
async function randomEvents(): Promise<void> {
  await randomSteps(600_000, [
    ...changes,
    () => server.freeze(),
    () => server.cut(),
    () => server.forget(),
    () => (server.faults.drop = () => random() < 0.5),
    () => (server.faults.down = random() < 0.5),
    () => (server.faults.list = () => random() < 0.5),
    () => (server.faults.watch = () => (random() < 0.5 ? "end" : undefined)),
    () => server.clearFaults(),
  ]);
}

async function randomSteps(forMs: number, steps: readonly (() => unknown)[]): Promise<void> {
  for (const until = clock.now() + forMs; clock.now() < until; await clock.advance(random() * 10_000)) {
    steps[Math.floor(random() * steps.length)]?.();
  }
}
