import { describe, expect, spyOn, test } from "bun:test";
import { manualClock, type KubeObject, type ObjectRef, type Resource } from "@pko/kube";

import { referencePoller, versionOf, type PolledObject } from "./reference-poller.ts";

/** An API server with a few objects, which records the reads. */
function setting(initial: Readonly<Record<string, string>>, gapMs = 10) {
  const versions = new Map(Object.entries(initial));
  const reads: string[] = [];
  const woken: string[] = [];
  let broken = false;
  const client = {
    async find<T extends KubeObject>(resource: Resource<T>, { name }: ObjectRef): Promise<T | undefined> {
      expect(resource.view).toBe("metadata");
      reads.push(`${resource.kind}/${name}`);
      if (broken) throw new Error("no connection");
      const resourceVersion = versions.get(name);
      const metadata = { name, uid: `uid-of-${name}`, resourceVersion };
      return resourceVersion === undefined ? undefined : ({ metadata } as unknown as T);
    },
  };
  const clock = manualClock();
  const poller = referencePoller({ client, clock, everyMs: 60_000, gapMs, random: () => 0.5 });
  const follow = (user: string, ...objects: readonly PolledObject[]): void =>
    poller.follow(user, { objects, wake: () => woken.push(user) });
  return { versions, reads, woken, clock, poller, follow, breakDown: (value: boolean) => (broken = value) };
}

const object = (name: string, version: string, kind: PolledObject["kind"] = "Secret"): PolledObject => ({
  kind,
  namespace: "team",
  name,
  version: version && versionOf({ metadata: { name, uid: `uid-of-${name}`, resourceVersion: version } }),
});

describe("Secrets and ConfigMaps in use", () => {
  test("are read once a minute, however many use them, and wake no user while they do not change", async () => {
    const { reads, woken, clock, follow } = setting({ token: "1" });
    follow("a", object("token", "1"));
    follow("b", object("token", "1"));
    await clock.advance(180_000);
    expect(reads).toEqual(["Secret/token", "Secret/token", "Secret/token"]);
    expect(woken).toEqual([]);
  });

  test("are read as often as before when the wall clock is set back", async () => {
    const { reads, clock, follow } = setting({ token: "1", other: "1" });
    follow("a", object("token", "1"));
    await clock.advance(61_000);
    clock.stepWallClock(-3_600_000);
    follow("b", object("other", "1"));
    await clock.advance(61_000);
    expect(reads.toSorted()).toEqual(["Secret/other", "Secret/token", "Secret/token"]);
  });

  test("wake each user once when they are changed, created or deleted", async () => {
    const { versions, woken, clock, follow } = setting({ token: "1" });
    follow("a", object("token", "1"), object("settings", "", "ConfigMap"));
    follow("b", object("token", "1"));
    versions.set("token", "2");
    await clock.advance(61_000);
    expect(woken).toEqual(["a", "b"]);
    await clock.advance(120_000);
    expect(woken).toEqual(["a", "b"]);
    versions.set("settings", "1");
    await clock.advance(61_000);
    versions.delete("token");
    await clock.advance(61_000);
    expect(woken).toEqual(["a", "b", "a", "a", "b"]);
  });

  test("wake a user that has read an older version than the others", async () => {
    const { woken, clock, follow } = setting({ token: "2" });
    follow("late", object("token", "1"));
    follow("present", object("token", "2"));
    await clock.advance(61_000);
    expect(woken).toEqual(["late"]);
  });

  test("are no longer read when they have no user", async () => {
    const { reads, clock, poller, follow } = setting({ token: "1", other: "1" });
    follow("a", object("token", "1"));
    follow("a", object("other", "1"));
    await clock.advance(61_000);
    expect(reads).toEqual(["Secret/other"]);
    poller.forget("a");
    await clock.advance(180_000);
    expect(reads).toHaveLength(1);
  });

  test("are read one after the other, with a pause, however many there are", async () => {
    const names = Array.from({ length: 1000 }, (_, index) => `s${index}`);
    const { reads, clock, follow } = setting(Object.fromEntries(names.map((name) => [name, "1"])), 100);
    follow("a", ...names.map((name) => object(name, "1")));
    await clock.advance(60_000 + 10_000);
    expect(reads.length).toBeGreaterThan(90);
    expect(reads.length).toBeLessThan(110);
    await clock.advance(100_000);
    expect(new Set(reads).size).toBe(1000);
  });

  test("of one namespace do not delay those of another", async () => {
    const names = Array.from({ length: 3000 }, (_, index) => `s${index}`);
    const { reads, clock, follow } = setting(Object.fromEntries(names.map((name) => [name, "1"])), 100);
    follow("a", ...names.map((name) => object(name, "1")));
    follow("b", { ...object("token", ""), namespace: "other" });
    for (let minute = 0; minute < 10; minute++) await clock.advance(60_000);
    expect(reads.filter((read) => read === "Secret/token").length).toBeGreaterThanOrEqual(9);
  });

  test("are followed at a cost that does not grow with the number of namespaces", () => {
    const { follow } = setting({});
    for (let i = 0; i < 1000; i++) follow(`user-${i}`, { ...object("token", ""), namespace: `team-${i}` });
    const iterations = spyOn(Map.prototype, "values");
    follow("late", object("token", ""));
    const count = iterations.mock.calls.length;
    iterations.mockRestore();
    expect(count).toBeLessThan(10);
  });

  test("are read when the only one before them is no longer used", async () => {
    const { reads, clock, poller, follow } = setting({ token: "1", other: "1" });
    follow("a", object("token", "1"));
    await clock.advance(30_000);
    follow("b", { ...object("other", "1"), namespace: "other" });
    poller.forget("a");
    await clock.advance(61_000);
    expect(reads).toEqual(["Secret/other"]);
  });

  test("that cannot be read wake no user, and are read again", async () => {
    const { versions, woken, clock, follow, breakDown } = setting({ token: "1" });
    follow("a", object("token", "1"));
    breakDown(true);
    await clock.advance(61_000);
    breakDown(false);
    versions.set("token", "2");
    expect(woken).toEqual([]);
    await clock.advance(61_000);
    expect(woken).toEqual(["a"]);
  });

  test("are forgotten when the poller stops", async () => {
    const { reads, clock, poller, follow } = setting({ token: "1" });
    follow("a", object("token", "1"));
    poller.stop();
    await clock.advance(180_000);
    expect(reads).toEqual([]);
    expect(clock.pending).toBe(0);
  });
});
