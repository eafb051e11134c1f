import { expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateSync } from "node:zlib";

import { readPack, type ObjectFormat } from "./pack.ts";

const read = (pack: Buffer, format: ObjectFormat = "sha1", bytes = 1_000_000) =>
  readPack(pack, { format, maxObjects: 300, budget: { bytes } });

/** A pack of two commits, with deltas, made by git. */
function packOf(format: ObjectFormat): { readonly pack: Buffer; readonly trees: readonly string[] } {
  const folder = mkdtempSync(join(tmpdir(), "pack-"));
  const git = (args: readonly string[], input = ""): Buffer =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...args], { cwd: folder, input });
  try {
    git(["init", "--quiet", `--object-format=${format}`]);
    for (let file = 0; file < 200; file++) writeFileSync(join(folder, `file-${file}`), String(file));
    git(["add", "."]);
    git(["commit", "--quiet", "-m", "one"]);
    writeFileSync(join(folder, "file-7"), "changed");
    git(["commit", "--quiet", "-a", "-m", "two"]);
    const pack = git(["pack-objects", "--stdout", "--revs", "--quiet"], "HEAD\n");
    const trees = ["HEAD^{tree}", "HEAD~1^{tree}"].map((name) => git(["rev-parse", name]).toString().trim());
    return { pack, trees };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test.each(["sha1", "sha256"] as const)("the objects of a pack with deltas are found by their %s IDs", (format) => {
  const { pack, trees } = packOf(format);
  const objects = read(pack, format);
  expect(trees.map((id) => objects.get(id)?.type)).toEqual(["tree", "tree"]);
  expect(objects.size).toBe(2 + 2 + 201);
});

test("a pack that is cut off or damaged is rejected, or its objects have other IDs", () => {
  const { pack, trees } = packOf("sha1");
  const whole = read(pack);
  for (let at = 0; at < pack.length; at += 97) {
    const damaged = Buffer.from(pack);
    damaged[at] = (damaged[at] ?? 0) ^ 0x55;
    for (const bad of [pack.subarray(0, at), damaged]) {
      try {
        const objects = read(bad);
        for (const id of trees) {
          const object = objects.get(id);
          if (object) expect(object.content.equals(whole.get(id)?.content ?? Buffer.alloc(0))).toBe(true);
        }
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
      }
    }
  }
});

/** Seven bits of a number in each byte, the lowest ones first. */
function sizeBytes(size: number): Buffer {
  const bytes: number[] = [];
  for (let rest = size; ; rest = Math.floor(rest / 128)) {
    bytes.push((rest % 128) + (rest >= 128 ? 128 : 0));
    if (rest < 128) return Buffer.from(bytes);
  }
}

const blob = 3;
const delta = 7;

interface Entry {
  readonly type: number;
  readonly content: Buffer;
  readonly size?: number;
  readonly base?: string;
}

function entryBytes({ type, content, size = content.length, base = "" }: Entry): Buffer {
  const rest = Math.floor(size / 16);
  const first = Buffer.from([type * 16 + (size % 16) + (rest > 0 ? 128 : 0)]);
  const more = rest > 0 ? sizeBytes(rest) : Buffer.alloc(0);
  return Buffer.concat([first, more, Buffer.from(base, "hex"), deflateSync(content)]);
}

function hostilePack(...entries: readonly Entry[]): Buffer {
  const header = Buffer.from("PACK\0\0\0\x02\0\0\0\0", "latin1");
  header.writeUInt32BE(entries.length, 8);
  return Buffer.concat([header, ...entries.map(entryBytes)]);
}

const content = Buffer.alloc(1000, "x");
const baseEntry: Entry = { type: blob, content };
const base = [...read(hostilePack(baseEntry)).keys()][0] ?? "";
const deltaEntry = (target: Buffer, ...commands: readonly number[]): Entry => {
  return { type: delta, base, content: Buffer.concat([sizeBytes(1000), target, Buffer.from(commands)]) };
};
const copyAll = [0b1011_0000, 1000 % 256, Math.floor(1000 / 256)];

test("a delta copies its base, and inserts", () => {
  const objects = read(hostilePack(baseEntry, deltaEntry(sizeBytes(1001), ...copyAll, 1, 0x79)));
  expect([...objects.values()].map((object) => object.content.toString())).toEqual([
    content.toString(),
    `${content.toString()}y`,
  ]);
});

const wrongDeltas: readonly (readonly [string, Buffer, readonly number[]])[] = [
  ["copies more than it announces", sizeBytes(1000), [...copyAll, ...copyAll]],
  ["copies less than it announces", sizeBytes(2001), [...copyAll, ...copyAll]],
  ["copies what is behind the end of its base", sizeBytes(1000), [0b1011_0001, 1, ...copyAll.slice(1)]],
  ["inserts more than it contains", sizeBytes(5), [5, 0x79]],
  ["has the reserved command 0", sizeBytes(1000), [0, ...copyAll]],
  ["announces more than an object may have", sizeBytes(2 ** 30), copyAll],
  ["announces a size that is not a number", Buffer.concat([Buffer.alloc(200, 128), Buffer.from([0])]), copyAll],
];
test.each(wrongDeltas)("rejects a delta that %s", (_, target, commands) => {
  expect(() => read(hostilePack(baseEntry, deltaEntry(target, ...commands)))).toThrow("a delta has a wrong size");
});

test("what deltas produce counts, and packs share a budget", () => {
  const pack = hostilePack(baseEntry, deltaEntry(sizeBytes(1000), ...copyAll));
  const budget = { bytes: 4100 };
  const limits = { format: "sha1", maxObjects: 2, budget } as const;
  readPack(pack, limits);
  readPack(pack, limits);
  expect(budget.bytes).toBeLessThan(100);
  expect(() => readPack(pack, limits)).toThrow("too large");
  expect(() => read(pack, "sha1", 1500)).toThrow("too large");
});

test("a pack with more objects than were requested is rejected before any is read", () => {
  const pack = hostilePack(...Array.from({ length: 301 }, () => ({ type: blob, content: Buffer.alloc(0) })));
  expect(() => read(pack)).toThrow("more objects than were requested");
  expect(() => read(pack.subarray(0, 12))).toThrow("more objects than were requested");
});

test("an object that is larger than it announces is not unpacked", () => {
  const bomb = { type: blob, content: Buffer.alloc(50_000_000), size: 0 };
  expect(() => read(hostilePack(bomb))).toThrow();
  expect(read(hostilePack({ type: blob, content: Buffer.alloc(0) })).size).toBe(1);
});
