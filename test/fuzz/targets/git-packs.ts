/** Packs of a Git server. An input describes a pack, because a change of compressed bytes would only break them. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { deflateSync } from "node:zlib";

import { readPack, type PackObjects } from "../../../packages/git/src/pack.ts";
import { lazyFolder } from "../engine/folder.ts";
import { bytesIn, numberIn } from "../engine/recipe.ts";
import { hold, jsonOf, type Target } from "../engine/target.ts";

/** What is missing or wrong is taken as it is. */
interface Entry {
  readonly type?: unknown;
  /** As latin1. */
  readonly content?: unknown;
  /** Instead of the real size. */
  readonly size?: unknown;
  /** The number of the entry that a delta refers to. */
  readonly base?: unknown;
  /** The commands of a delta. */
  readonly delta?: unknown;
}

const maxContent = 1024 * 1024;

function packOf(input: Uint8Array): Buffer | undefined {
  const recipe = jsonOf(input) as { entries?: unknown; count?: unknown; cut?: unknown } | null | undefined;
  if (!Array.isArray(recipe?.entries)) return undefined;
  const entries = recipe.entries.slice(0, 50) as readonly (Entry | null)[];
  const ids: string[] = [];
  const parts = entries.map((entry) => entryOf(entry ?? {}, ids));
  const header = Buffer.alloc(12);
  header.write("PACK");
  header.writeUInt32BE(2, 4);
  header.writeUInt32BE(numberIn(recipe.count, entries.length) >>> 0, 8);
  const pack = Buffer.concat([header, ...parts]);
  const cut = pack.subarray(0, pack.length - (numberIn(recipe.cut, 0) >>> 0));
  return Buffer.concat([cut, createHash("sha1").update(cut).digest()]);
}

const types = ["", "commit", "tree", "blob", "tag"];

function entryOf({ type, content, size, base, delta }: Entry, ids: string[]): Buffer {
  const number = numberIn(type, 3) & 7;
  const data = Array.isArray(delta) ? Buffer.concat(delta.map(commandOf)) : bytesIn(content);
  ids.push(
    createHash("sha1")
      .update(`${types[number] ?? ""} ${data.length}\0`)
      .update(data)
      .digest("hex"),
  );
  const reference = number === 7 ? Buffer.from(ids[numberIn(base, 0)] ?? "ab".repeat(20), "hex") : Buffer.alloc(0);
  return Buffer.concat([sizeHeader(number, numberIn(size, data.length)), reference, deflateSync(data, { level: 1 })]);
}

function sizeHeader(type: number, given: number): Buffer {
  let size = Math.min(Math.abs(given), Number.MAX_SAFE_INTEGER);
  const bytes = [(type << 4) | (size % 16)];
  for (size = Math.floor(size / 16); size > 0; size = Math.floor(size / 128)) {
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) | 128;
    bytes.push(size % 128);
  }
  return Buffer.from(bytes);
}

/** A number is a size, a text is inserted, a pair of numbers copies from the base, and a list of more numbers are bytes. */
function commandOf(command: unknown): Buffer {
  if (typeof command === "number") return variableSize(Math.abs(command));
  if (typeof command === "string") return Buffer.concat([Buffer.from([command.length & 127]), bytesIn(command)]);
  if (!Array.isArray(command)) return Buffer.alloc(0);
  const [offset, size] = command.map((each) => numberIn(each, 0) >>> 0);
  if (command.length > 2 || offset === undefined || size === undefined)
    return Buffer.from(command.map((byte) => numberIn(byte, 0)));
  return Buffer.from([0b1011_0001, offset & 255, size & 255, (size >> 8) & 255]);
}

function variableSize(given: number): Buffer {
  const bytes: number[] = [];
  let size = Math.min(given, Number.MAX_SAFE_INTEGER);
  do {
    bytes.push((size % 128) | (size >= 128 ? 128 : 0));
    size = Math.floor(size / 128);
  } while (size > 0);
  return Buffer.from(bytes);
}

/** Undefined if it is rejected. */
function read(pack: Buffer): PackObjects | undefined {
  const budget = { bytes: maxContent };
  try {
    return readPack(pack, { format: "sha1", maxObjects: 40, budget });
  } catch (error) {
    hold(error instanceof Error, "a pack is rejected with an error");
    hold(!(error instanceof TypeError), `a pack is rejected on purpose: ${error.message}`);
    return undefined;
  }
}

function check(input: Uint8Array): void {
  const pack = packOf(input);
  const objects = pack && read(pack);
  if (!objects) return;
  hold(objects.size <= 40, "a pack has no more objects than were requested");
  const bytes = objects.values().reduce((sum, { content }) => sum + content.length, 0);
  hold(bytes <= maxContent, "objects are no larger than allowed");
}

const folder = lazyFolder();
const git = (args: readonly string[], input?: Buffer): string =>
  execFileSync("git", ["-C", folder(), ...args], {
    encoding: "utf8",
    stdio: ["pipe", "pipe", "pipe"],
    ...(input && { input }),
  });

/** A pack that we accept, git accepts, too, and finds the same objects in it. */
function compare(input: Uint8Array): void {
  const pack = packOf(input);
  const objects = pack && read(pack);
  if (!objects || objects.size === 0 || pack.readUInt32BE(8) !== objects.size) return;
  git(["init", "--quiet", "--bare", "--object-format=sha1", "compared"]);
  try {
    git(["--git-dir=compared", "unpack-objects", "-q"], pack);
    const listed = git(["--git-dir=compared", "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
    hold(listed.trim() === [...objects.keys()].toSorted().join("\n"), "git finds the same objects");
  } finally {
    rmSync(join(folder(), "compared"), { recursive: true });
  }
}

export const gitPacksTarget: Target = {
  name: "git-packs",
  form: "json",
  seeds: [
    '{"entries":[{"type":3,"content":"hello"},{"type":2,"content":"100644 a\\u000001234567890123456789"}]}',
    '{"entries":[{"type":3,"content":"hello world, hello"},{"type":7,"base":0,"delta":[18,11,[0,5],"+ more"]}]}',
    '{"entries":[{"type":3,"content":"x"},{"type":6,"content":"x"},{"type":4,"content":"","size":1}],"count":2,"cut":1}',
  ],
  rounds: 3000,
  check,
  compare,
};
