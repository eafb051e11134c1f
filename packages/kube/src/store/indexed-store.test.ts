import { beforeEach, describe, expect, test } from "bun:test";

import { IndexedStore } from "./indexed-store.ts";
import type { KubeObject } from "../resource.ts";
import type { Change } from "./store.ts";

function pod(name: string, labels: Record<string, string> = {}): KubeObject {
  return { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "a", labels } };
}

const everything = (): boolean => true;
let errors: string[];
let store: IndexedStore<KubeObject>;
let changes: Change<KubeObject>[];

beforeEach(() => {
  errors = [];
  changes = [];
  store = new IndexedStore({
    indexers: {
      app: ({ metadata }) => (metadata.labels?.["app"] ? [metadata.labels["app"]] : []),
      fragile: ({ metadata }) => {
        if (metadata.name === "poison") throw new Error("cannot");
        return ["fine"];
      },
    },
    onError: (_, what) => errors.push(what),
  });
  store.subscribe((change) => changes.push(change));
});

const names = (objects: readonly KubeObject[]): (string | undefined)[] => objects.map(({ metadata }) => metadata.name);

test("each change is reported once, with the object before it", () => {
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

test("objects are found by their current index value, and no longer by a previous one", () => {
  store.set(pod("x", { app: "web" }));
  store.set(pod("y", { app: "web" }));
  store.set(pod("z"));
  expect(names(store.byIndex("app", "web"))).toEqual(["x", "y"]);
  store.set(pod("x", { app: "db" }));
  store.remove("a/y");
  expect(names(store.byIndex("app", "web"))).toEqual([]);
  expect(names(store.byIndex("app", "db"))).toEqual(["x"]);
});

test("an unknown index throws", () => {
  expect(() => store.byIndex("other", "x")).toThrow('no index "other"');
});

describe("replace", () => {
  test("reports only differences: removed and new objects", () => {
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

  test("keeps objects that are out of scope", () => {
    store.set(pod("x"));
    store.replace([], () => false);
    expect(store.size).toBe(1);
  });

  test("is complete before the first listener is called", () => {
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
  let calls = 0;
  store.subscribe(() => calls++);
  store.set(pod("x"));
  expect([calls, store.size, errors]).toEqual([1, 1, ["a listener failed"]]);
});

test("an object for which an index function throws is stored anyway", () => {
  store.set(pod("poison", { app: "web" }));
  expect(names(store.byIndex("app", "web"))).toEqual(["poison"]);
  expect(store.byIndex("fragile", "fine")).toEqual([]);
  expect(errors).toEqual(['index "fragile" failed']);
});

test("a subscription can be ended", () => {
  let calls = 0;
  const end = store.subscribe(() => calls++);
  end();
  store.set(pod("x"));
  expect(calls).toBe(0);
});
