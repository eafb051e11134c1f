import { beforeEach, describe, expect, test } from "bun:test";

import { IndexedStore } from "./indexed-store.ts";
import type { KubeObject } from "../resource.ts";
import type { Change } from "./store.ts";

function pod(name: string, labels: Record<string, string> = {}): KubeObject {
  return { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "a", labels } };
}

const everything = (): boolean => true;
let troubles: string[];
let store: IndexedStore<KubeObject>;
let changes: Change<KubeObject>[];

beforeEach(() => {
  troubles = [];
  changes = [];
  store = new IndexedStore({
    indexers: {
      app: ({ metadata }) => (metadata.labels?.["app"] ? [metadata.labels["app"]] : []),
      fragile: ({ metadata }) => {
        if (metadata.name === "poison") throw new Error("cannot");
        return ["fine"];
      },
    },
    onError: (_, what) => troubles.push(what),
  });
  store.subscribe((change) => changes.push(change));
});

const names = (objects: readonly KubeObject[]): (string | undefined)[] => objects.map(({ metadata }) => metadata.name);

test("each change is told once, with what was before", () => {
  const [first, second] = [pod("x"), pod("x", { v: "2" })];
  store.set(first);
  store.set(second);
  store.set(second);
  store.remove("a/x");
  store.remove("a/x");
  expect(changes).toEqual([
    { key: "a/x", after: first },
    { key: "a/x", before: first, after: second },
    { key: "a/x", before: second },
  ]);
});

test("objects are found by what an index says of them, and no longer by what it said", () => {
  store.set(pod("x", { app: "web" }));
  store.set(pod("y", { app: "web" }));
  store.set(pod("z"));
  expect(names(store.byIndex("app", "web"))).toEqual(["x", "y"]);
  store.set(pod("x", { app: "db" }));
  store.remove("a/y");
  expect(names(store.byIndex("app", "web"))).toEqual([]);
  expect(names(store.byIndex("app", "db"))).toEqual(["x"]);
});

test("an index that nobody declared is a mistake", () => {
  expect(() => store.byIndex("other", "x")).toThrow('no index "other"');
});

describe("replace", () => {
  test("tells the difference alone: what is gone, what is new", () => {
    const [x, y, z] = [pod("x"), pod("y"), pod("z")];
    store.set(x);
    store.set(y);
    changes.length = 0;
    store.replace([y, z], everything);
    expect(changes).toEqual([
      { key: "a/x", before: x },
      { key: "a/z", after: z },
    ]);
    expect(names(store.list())).toEqual(["y", "z"]);
  });

  test("leaves alone what is out of its scope", () => {
    store.set(pod("x"));
    store.replace([], () => false);
    expect(store.size).toBe(1);
  });

  test("is done before the first listener hears of it", () => {
    const sizes: number[] = [];
    store.subscribe(() => sizes.push(store.size));
    store.replace([pod("x"), pod("y")], everything);
    expect(sizes).toEqual([2, 2]);
  });
});

test("a listener that throws stops neither the store nor the others", () => {
  store.subscribe(() => {
    throw new Error("oh");
  });
  let heard = 0;
  store.subscribe(() => heard++);
  store.set(pod("x"));
  expect([heard, store.size, troubles]).toEqual([1, 1, ["a listener failed"]]);
});

test("an object that an index function cannot take is stored all the same", () => {
  store.set(pod("poison", { app: "web" }));
  expect(names(store.byIndex("app", "web"))).toEqual(["poison"]);
  expect(store.byIndex("fragile", "fine")).toEqual([]);
  expect(troubles).toEqual(['index "fragile" failed']);
});

test("a subscription ends", () => {
  let heard = 0;
  const end = store.subscribe(() => heard++);
  end();
  store.set(pod("x"));
  expect(heard).toBe(0);
});
