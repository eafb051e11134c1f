/** Trees of a Git server. An input describes two directories, which are compared by their trees and by their paths. */
import { createHash } from "node:crypto";

import type { PackObject } from "../../../packages/git/src/pack.ts";
import { diffTrees, type FetchObjects } from "../../../packages/git/src/tree-diff.ts";
import { hold, jsonOf, type Target } from "../engine/target.ts";

class Objects {
  readonly #objects = new Map<string, PackObject>();

  readonly fetch: FetchObjects = (ids) => {
    const found = ids.flatMap((id) => {
      const object = this.#objects.get(id);
      return object ? [[id, object] as const] : [];
    });
    return Promise.resolve({ kind: "fetched", objects: new Map(found) });
  };

  add(content: Buffer): string {
    const id = createHash("sha1").update(`tree ${content.length}\0`).update(content).digest("hex");
    this.#objects.set(id, { type: "tree", content });
    return id;
  }
}

/** An object is a directory, everything else a file with that content. */
function treeOf(directory: object, objects: Objects): string {
  const entries = Object.entries(directory).flatMap(([name, value]: [string, unknown]) => {
    if (!isName(name)) return [];
    const id = isDirectory(value) ? treeOf(value, objects) : fileId(value);
    return [Buffer.from(`${isDirectory(value) ? "40000" : "100644"} ${name}\0`), Buffer.from(id, "hex")];
  });
  return objects.add(Buffer.concat(entries));
}

const isDirectory = (value: unknown): value is object => typeof value === "object" && value !== null;
const isName = (name: string): boolean => name.isWellFormed() && name !== "" && !/[/\0]/.test(name);
const fileId = (value: unknown): string => createHash("sha1").update(JSON.stringify(value)).digest("hex");

function filesIn(directory: object, path = ""): [string, string][] {
  return Object.entries(directory).flatMap(([name, value]: [string, unknown]): [string, string][] => {
    if (!isName(name)) return [];
    return isDirectory(value) ? filesIn(value, `${path}${name}/`) : [[path + name, fileId(value)]];
  });
}

/** The files that only one has, or that differ. */
function differing(before: object, after: object): string[] {
  const [old, now] = [new Map(filesIn(before)), new Map(filesIn(after))];
  return [...new Set([...old.keys(), ...now.keys()])].filter((path) => old.get(path) !== now.get(path));
}

async function check(input: Uint8Array): Promise<void> {
  const recipe = jsonOf(input);
  if (!isDirectory(recipe)) return;
  const { before, after, damage } = recipe as { before?: unknown; after?: unknown; damage?: unknown };
  if (!isDirectory(before) || !isDirectory(after) || depthOf(recipe) > 100) return;
  const objects = new Objects();
  if (typeof damage === "string") return await checkDamaged(objects, Buffer.from(damage, "latin1"));
  const difference = { path: "", before: treeOf(before, objects), after: treeOf(after, objects) };
  const result = await diffTrees(difference, objects.fetch);
  if (result.kind !== "compared") return hold(result.kind === "unknown", "a comparison has a result or a reason");
  hold(Bun.deepEquals(result.paths, differing(before, after).toSorted()), "the files that differ are found");
}

async function checkDamaged(objects: Objects, content: Buffer): Promise<void> {
  try {
    const result = await diffTrees({ path: "", before: undefined, after: objects.add(content) }, objects.fetch);
    hold(result.kind === "compared" || result.kind === "unknown", "a comparison has a result or a reason");
  } catch (error) {
    hold(error instanceof Error && /damaged|did not send/.test(error.message), "a damaged tree is reported");
  }
}

const depthOf = (value: unknown): number =>
  isDirectory(value) ? 1 + Math.max(0, ...Object.values(value).map((each: unknown) => depthOf(each))) : 0;

export const gitTreesTarget: Target = {
  name: "git-trees",
  form: "json",
  seeds: [
    '{"before":{"a":1,"dir":{"b":2,"c":{"d":3}},"gone":{"x":1}},"after":{"a":2,"dir":{"b":2,"c":{"e":3}},"new":{"y":{}}}}',
    '{"before":{"a":{"b":1}},"after":{"a":1}}',
    '{"before":{},"after":{},"damage":"40000 a\\u000001234567890123456789100644 b\\u000001234567890123456789"}',
  ],
  rounds: 3000,
  check,
};
