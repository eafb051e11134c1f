import { expect, test } from "bun:test";
import { createHash } from "node:crypto";

import type { PackObject } from "./pack.ts";
import { diffTrees, type FetchObjects, type TreeDiff } from "./tree-diff.ts";

/** `name`: as latin1. */
type Entry = readonly [mode: string, name: string, id: string];

/** A Git server without limits: every tree that was added can be fetched. */
class Trees {
  readonly #objects = new Map<string, PackObject>();
  readonly fetch: FetchObjects = (ids) => {
    const objects = new Map(ids.flatMap((id) => [[id, this.#objects.get(id)] as const]));
    return Promise.resolve({ kind: "fetched", objects: objects as Map<string, PackObject> });
  };

  add(...entries: readonly Entry[]): string {
    const content = Buffer.concat(
      entries.flatMap(([mode, name, id]) => [Buffer.from(`${mode} ${name}\0`, "latin1"), Buffer.from(id, "hex")]),
    );
    const id = createHash("sha1").update(`tree ${content.length}\0`).update(content).digest("hex");
    this.#objects.set(id, { type: "tree", content });
    return id;
  }

  async diff(before: string | undefined, after: string | undefined): Promise<TreeDiff> {
    return await diffTrees({ path: "", before, after }, this.fetch);
  }

  /** The message of the error, which `compareCommits` reports. */
  async problem(before: string | undefined, after: string | undefined): Promise<string> {
    return await this.diff(before, after).then(
      ({ kind }) => kind,
      (error: unknown) => String(error),
    );
  }
}

const [one, two] = ["1".repeat(40), "2".repeat(40)] as const;
const file = (name: string, id: string = one): Entry => ["100644", name, id];
const directory = (name: string, id: string): Entry => ["40000", name, id];
const numbered = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `${index}`);
const compared = (...paths: readonly string[]): TreeDiff => ({ kind: "compared", paths });
const unknown = (reason: string): TreeDiff => ({ kind: "unknown", reason });

test("finds files that are changed, added and removed at any depth", async () => {
  const trees = new Trees();
  const inner = trees.add(file("a"), file("b"));
  const before = trees.add(directory("dir", inner), file("removed"), directory("same", inner));
  const after = trees.add(
    file("added"),
    directory("dir", trees.add(file("a", two), file("b"))),
    directory("same", inner),
  );
  expect(await trees.diff(before, after)).toEqual(compared("added", "dir/a", "removed"));
  expect(await trees.diff(before, before)).toEqual(compared());
});

/** A tree whose directories are all the same objects: few bytes, and `width ** depth` directories. */
function bomb(trees: Trees, { width, depth }: { width: number; depth: number }, leaf: Entry): string {
  let tree = trees.add(leaf);
  for (let level = 0; level < depth; level++) tree = trees.add(...numbered(width).map((name) => directory(name, tree)));
  return tree;
}

test("gives up when few objects describe very many directories", async () => {
  const trees = new Trees();
  const [before, after] = [one, two].map((id) => bomb(trees, { width: 60, depth: 4 }, file("a", id)));
  expect(await trees.diff(before, after)).toEqual(unknown("too many directories differ"));
});

test("gives up when very many files differ", async () => {
  const trees = new Trees();
  const leaf = trees.add(...numbered(200).map((name) => file(name)));
  const tree = trees.add(...numbered(51).map((name) => directory(name, leaf)));
  expect(await trees.diff(trees.add(), tree)).toEqual(unknown("too many files differ"));
});

test("gives up when the paths of all files are very long", async () => {
  const trees = new Trees();
  const leaf = trees.add(...numbered(1000).map((name) => file(name)));
  const tree = trees.add(directory("x".repeat(3000), leaf));
  expect(await trees.diff(trees.add(), tree)).toEqual(unknown("too many files differ"));
});

test("gives up at a very long path", async () => {
  const trees = new Trees();
  const tree = trees.add(directory("x".repeat(4000), trees.add(directory("y".repeat(100), trees.add(file("a"))))));
  expect(await trees.diff(trees.add(), tree)).toEqual(unknown("a path is longer than 4096 characters"));
});

test("gives up when directories with very many files differ, however few of the files do", async () => {
  const trees = new Trees();
  const files = numbered(10_000).map((name) => file(name));
  const [before, after] = [one, two].map((id) => {
    const large = trees.add(...files, file("changed", id));
    return trees.add(...numbered(11).map((name) => directory(name, large)));
  });
  expect(await trees.problem(before, after)).toEndWith("the directories that differ are too large");
});

test("names that are not UTF-8 stay different", async () => {
  const trees = new Trees();
  const before = trees.add(file("\u00e4", one), file("\u00f6", one));
  const after = trees.add(file("\u00e4", two), file("\u00f6", one));
  expect(await trees.diff(before, after)).toEqual(compared("\ufffd"));
  const utf8 = Buffer.from("ä").toString("latin1");
  expect(await trees.diff(trees.add(), trees.add(file(utf8)))).toEqual(compared("ä"));
});

test("a directory whose mode begins with a zero is a directory", async () => {
  const trees = new Trees();
  const [before, after] = [one, two].map((id) => trees.add(["040000", "dir", trees.add(file("a", id))]));
  expect(await trees.diff(before, after)).toEqual(compared("dir/a"));
  expect(await trees.diff(before, trees.add(directory("dir", trees.add(file("a", one)))))).toEqual(compared());
});

test("rejects a tree with the same name twice: a change of one entry would be hidden by the other", async () => {
  const trees = new Trees();
  const [before, after] = [one, two].map((id) => trees.add(file("a", id), file("a", one)));
  expect(await trees.problem(before, after)).toEndWith("is damaged");
});
