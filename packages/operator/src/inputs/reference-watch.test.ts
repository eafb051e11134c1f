import { describe, expect, test } from "bun:test";
import { manualClock, type KubeObject, type ObjectRef, type Resource } from "@pko/kube";

import { referenceWatch, versionOf, type WatchedObject } from "./reference-watch.ts";

/** An API server with a few objects, which counts what it is asked. */
function setting(initial: Readonly<Record<string, string>>, gapMs = 10) {
  const versions = new Map(Object.entries(initial));
  const asked: string[] = [];
  const woken: string[] = [];
  let broken = false;
  const client = {
    async find<T extends KubeObject>(resource: Resource<T>, { name }: ObjectRef): Promise<T | undefined> {
      expect(resource.view).toBe("metadata");
      asked.push(`${resource.kind}/${name}`);
      if (broken) throw new Error("no connection");
      const resourceVersion = versions.get(name);
      const metadata = { name, uid: `uid-of-${name}`, resourceVersion };
      return resourceVersion === undefined ? undefined : ({ metadata } as unknown as T);
    },
  };
  const clock = manualClock();
  const watch = referenceWatch({ client, clock, everyMs: 60_000, gapMs, random: () => 0.5 });
  const follow = (user: string, ...objects: readonly WatchedObject[]): void =>
    watch.follow(user, { objects, wake: () => woken.push(user) });
  return { versions, asked, woken, clock, watch, follow, breakDown: (value: boolean) => (broken = value) };
}

const object = (name: string, version: string, kind: WatchedObject["kind"] = "Secret"): WatchedObject => ({
  kind,
  namespace: "team",
  name,
  version: version && versionOf({ metadata: { name, uid: `uid-of-${name}`, resourceVersion: version } }),
});

describe("Secrets and ConfigMaps in use", () => {
  test("are asked for once a minute, however many use them, and nobody is woken while they stay the same", async () => {
    const { asked, woken, clock, follow } = setting({ token: "1" });
    follow("a", object("token", "1"));
    follow("b", object("token", "1"));
    await clock.advance(180_000);
    expect(asked).toEqual(["Secret/token", "Secret/token", "Secret/token"]);
    expect(woken).toEqual([]);
  });

  test("are read as often as before when the wall clock is set back", async () => {
    const { asked, clock, follow } = setting({ token: "1", other: "1" });
    follow("a", object("token", "1"));
    await clock.advance(61_000);
    clock.stepWallClock(-3_600_000);
    follow("b", object("other", "1"));
    await clock.advance(61_000);
    expect(asked.toSorted()).toEqual(["Secret/other", "Secret/token", "Secret/token"]);
  });

  test("wake each user once when they change, come or go", async () => {
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

  test("wake who has read an older version than the others", async () => {
    const { woken, clock, follow } = setting({ token: "2" });
    follow("late", object("token", "1"));
    follow("present", object("token", "2"));
    await clock.advance(61_000);
    expect(woken).toEqual(["late"]);
  });

  test("are not asked for any more when nobody uses them", async () => {
    const { asked, clock, watch, follow } = setting({ token: "1", other: "1" });
    follow("a", object("token", "1"));
    follow("a", object("other", "1"));
    await clock.advance(61_000);
    expect(asked).toEqual(["Secret/other"]);
    watch.forget("a");
    await clock.advance(180_000);
    expect(asked).toHaveLength(1);
  });

  test("are asked for one after the other, with a pause, however many there are", async () => {
    const names = Array.from({ length: 1000 }, (_, index) => `s${index}`);
    const { asked, clock, follow } = setting(Object.fromEntries(names.map((name) => [name, "1"])), 100);
    follow("a", ...names.map((name) => object(name, "1")));
    await clock.advance(60_000 + 10_000);
    expect(asked.length).toBeGreaterThan(90);
    expect(asked.length).toBeLessThan(110);
    await clock.advance(100_000);
    expect(new Set(asked).size).toBe(1000);
  });

  test("that cannot be asked for are no news; they are asked for again", async () => {
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

  test("are forgotten at the end", async () => {
    const { asked, clock, watch, follow } = setting({ token: "1" });
    follow("a", object("token", "1"));
    watch.stop();
    await clock.advance(180_000);
    expect(asked).toEqual([]);
    expect(clock.pending).toBe(0);
  });
});
