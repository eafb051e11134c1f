import { beforeEach, describe, expect, spyOn, test } from "bun:test";

import { Archive } from "./archive.ts";
import { IndexedStore } from "./indexed-store.ts";
import { keyOf, type KubeObject } from "../resource.ts";
import type { Change } from "./store.ts";

function pod(name: string, labels: Record<string, string> = {}): KubeObject {
  return { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "a", labels } };
}

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

const entries = (...objects: readonly KubeObject[]): Map<string, KubeObject> =>
  new Map(objects.map((object) => [keyOf(object), object]));

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
  test("reports only differences: removed and new objects", async () => {
    const [x, y, z] = [pod("x"), pod("y"), pod("z")];
    store.set(x);
    store.set(y);
    changes.length = 0;
    await store.replace(entries(y, z));
    expect(changes).toEqual([
      { key: "a/x", before: x },
      { key: "a/z", after: z },
    ]);
    expect(names(store.list())).toEqual(["y", "z"]);
  });

  test("keeps objects that are out of scope", async () => {
    store.set(pod("x"));
    await store.replace(entries(), "b");
    expect(store.size).toBe(1);
  });

  test("is complete before the first listener is called", async () => {
    const sizes: number[] = [];
    store.subscribe(() => sizes.push(store.size));
    await store.replace(entries(pod("x"), pod("y")));
    expect(sizes).toEqual([2, 2]);
  });

  test("does not block the event loop while many changes are reported", async () => {
    let others = 0;
    const reportedAt: number[] = [];
    store.subscribe(() => reportedAt.push(others));
    const work = (): void => {
      others++;
      if (reportedAt.length < 2000) setImmediate(work);
    };
    setImmediate(work);
    await store.replace(entries(...Array.from({ length: 2000 }, (_, index) => pod(`x${index}`))));
    expect(reportedAt).toHaveLength(2000);
    expect(new Set(reportedAt).size).toBeGreaterThan(2);
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

describe("archived objects", () => {
  const at = (version: string, labels: Record<string, string> = {}): KubeObject => {
    const object = pod("x", { app: "web", ...labels });
    return { ...object, metadata: { ...object.metadata, uid: "uid", resourceVersion: version } };
  };
  const entriesFor = (object: KubeObject) => new Map([[keyOf(object), store.createEntry(object)]]);
  const isDone = ({ metadata }: KubeObject): number | undefined => (metadata.labels?.["done"] ? 1000 : undefined);

  beforeEach(() => {
    store = new IndexedStore({
      indexers: { app: ({ metadata }) => [metadata.labels?.["app"] ?? ""] },
      archive: isDone,
      onError: (_, what) => errors.push(what),
    });
    store.set(at("1"));
    store.subscribe((change) => changes.push(change));
    changes = [];
    store.set(at("2", { done: "yes" }));
  });

  test("are read like others", () => {
    const expected = at("2", { done: "yes" });
    expect(store.get("a/x")).toEqual(expected);
    expect(store.list()).toEqual([expected]);
    expect(store.byIndex("app", "web")).toEqual([expected]);
    expect(store.size).toBe(1);
  });

  test("are not among those that controllers work on, and have the time until which nothing is due", () => {
    expect(store.active()).toEqual([]);
    expect(store.activeByIndex("app", "web")).toEqual([]);
    expect([...store.archived()]).toEqual([["a/x", 1000]]);
  });

  test("are known in their version", () => {
    expect(store.entryOf(at("2"), "a/x")).toBeDefined();
    expect(store.entryOf(at("3"), "a/x")).toBeUndefined();
  });

  test("are reported when they change", () => {
    store.remove("a/x");
    expect(
      changes.map(({ before, after }) => [before?.metadata.resourceVersion, after?.metadata.resourceVersion]),
    ).toEqual([
      ["1", "2"],
      ["2", undefined],
    ]);
    expect(store.byIndex("app", "web")).toEqual([]);
  });

  test("are found by their index values without being unpacked, until the last of them is removed", () => {
    store.set({ ...at("7", { done: "yes" }), metadata: { ...at("7", { done: "yes" }).metadata, name: "y" } });
    expect(names(store.byIndex("app", "web"))).toEqual(["x", "y"]);
    store.remove("a/x");
    expect(names(store.byIndex("app", "web"))).toEqual(["y"]);
    store.remove("a/y");
    expect(store.byIndex("app", "web")).toEqual([]);
  });

  test("are not unpacked if they are listed again without a change, although versions are not compared", async () => {
    const unpack = spyOn(Archive.prototype, "unpack");
    await store.replace(entriesFor(at("2", { done: "yes" })));
    expect(changes).toHaveLength(1);
    await store.replace(entriesFor(at("2", { done: "maybe" })));
    expect(changes).toHaveLength(2);
    const unpacked = unpack.mock.calls.length;
    unpack.mockRestore();
    expect(unpacked).toBe(0);
    expect(store.get("a/x")).toEqual(at("2", { done: "maybe" }));
  });

  test("are unpacked once for all listeners", () => {
    const seen: (KubeObject | undefined)[] = [];
    store.subscribe(({ before, after }) => seen.push(before, after));
    store.subscribe(({ before, after }) => seen.push(before, after));
    const unpack = spyOn(Archive.prototype, "unpack");
    store.set(at("3", { done: "yes" }));
    const unpacked = unpack.mock.calls.length;
    unpack.mockRestore();
    expect(seen.map((object) => object?.metadata.resourceVersion)).toEqual(["2", "3", "2", "3"]);
    expect(unpacked).toBe(2);
  });

  test("are known in a version that is not a number", () => {
    store.set(at("v2", { done: "yes" }));
    expect(store.entryOf(at("v2"), "a/x")).toBeDefined();
    expect(store.entryOf(at("2"), "a/x")).toBeUndefined();
  });

  test("become active again when they change", () => {
    store.set(at("3"));
    expect(store.active()).toEqual([at("3")]);
    expect([...store.archived()]).toEqual([]);
  });
});
