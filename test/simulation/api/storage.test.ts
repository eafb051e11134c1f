import { expect, test } from "bun:test";
import { updateKind } from "@pko/api";

import { servedKind } from "./kinds.ts";
import { Storage } from "./storage.ts";

test("a restored object has the owners of its fields at that time, so that an apply removes what it no longer has", () => {
  let now = 0;
  const storage = new Storage({ now: () => now, newUid: () => "u" });
  const path = { kind: servedKind(updateKind), namespace: "team", name: "web" };
  const apply = (spec: object) =>
    storage.apply(path, { metadata: { name: "web" }, spec: { ...spec } }, { manager: "operator" });
  apply({ git: { url: "a" } });
  now = 1000;
  apply({ local: { dir: "b" } });
  storage.restore(999);
  expect(storage.find(path)?.["spec"]).toEqual({ git: { url: "a" } });
  expect(apply({ local: { dir: "b" } })["spec"]).toEqual({ local: { dir: "b" } });
});

test("a restored etcd has the revision of the snapshot, to which other clients have added, and continues from there", () => {
  let now = 0;
  const storage = new Storage({ now: () => now, newUid: () => "u", otherWritesPerSecond: 5 });
  const create = (name: string) =>
    storage.create({ kind: servedKind(updateKind), namespace: "team" }, { metadata: { name } }, { manager: "user" });
  expect(create("a").metadata.resourceVersion).toBe("101");
  now = 10_000;
  expect(create("b").metadata.resourceVersion).toBe("152");
  storage.restore(8000);
  expect([storage.list().length, storage.revision]).toEqual([1, 141]);
  now = 11_000;
  expect(create("c").metadata.resourceVersion).toBe("147");
});
