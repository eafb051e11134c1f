/**
 * The gzip of artifacts of Flux: truncated, damaged, in several members, with other bytes around it, and bombs. An input
 * describes an archive, because nearly every change of compressed bytes has the same result: a wrong checksum.
 */
import { crc32, deflateRawSync, gzipSync } from "node:zlib";

import { tarOf, type TarEntry } from "../../../packages/agent/src/testing/tar.ts";
import { bytesIn, numberIn, objectsIn, textIn } from "../engine/recipe.ts";
import { hold, jsonOf, type Target } from "../engine/target.ts";
import { limits, unpackWithGnuTar, unpacked } from "./unpacking.ts";

/** What is missing or wrong is taken as it is. */
interface Recipe {
  /** Files with `path` and `body`, which is repeated `times`. */
  readonly entries?: unknown;
  /** How the tar is divided: each with a number of `bytes`, a `level`, and `flags` with what they announce in `header`. */
  readonly members?: unknown;
  /** Bytes that are missing at the end. */
  readonly cut?: unknown;
  /** Pairs of an offset, from the end if it is negative, and the bits to flip there. */
  readonly flips?: unknown;
  /** As latin1. */
  readonly before?: unknown;
  readonly after?: unknown;
}

/** Far above the limits, so that a bomb which is not noticed writes too much. */
const maxTarBytes = 4 * 1024 * 1024;

function recipeIn(input: Uint8Array): Recipe | undefined {
  const recipe = jsonOf(input);
  return typeof recipe === "object" && recipe !== null ? recipe : undefined;
}

function tarIn({ entries }: Recipe): Buffer {
  let left = maxTarBytes;
  const files = objectsIn(entries, 30).map(({ path, body, times, type }): TarEntry => {
    const text = textIn(body);
    const most = Math.floor(left / Math.max(1, Buffer.byteLength(text)));
    const content = text.repeat(Math.min(most, Math.abs(Math.trunc(numberIn(times, 1)))));
    left -= Buffer.byteLength(content);
    return { path: textIn(path), type: textIn(type) || "0", body: content };
  });
  return tarOf(files);
}

function archiveOf(recipe: Recipe, tar: Buffer): Buffer {
  const members = objectsIn(recipe.members, 20);
  const parts: Buffer[] = [bytesIn(recipe.before)];
  let rest = tar;
  for (const member of members.slice(0, -1)) {
    const content = rest.subarray(0, numberIn(member["bytes"], rest.length) >>> 0);
    rest = rest.subarray(content.length);
    parts.push(memberOf(content, member));
  }
  parts.push(memberOf(rest, members.at(-1) ?? {}));
  const whole = Buffer.concat(parts);
  const archive = Buffer.from(whole.subarray(0, Math.max(0, whole.length - (numberIn(recipe.cut, 0) >>> 0))));
  flip(archive, recipe.flips);
  return Buffer.concat([archive, bytesIn(recipe.after)]);
}

function memberOf(content: Buffer, { level, flags, header }: Readonly<Record<string, unknown>>): Buffer {
  const start = Buffer.from([0x1f, 0x8b, 8, numberIn(flags, 0) & 255, 0, 0, 0, 0, 0, 255]);
  const end = Buffer.alloc(8);
  end.writeUInt32LE(crc32(content), 0);
  end.writeUInt32LE(content.length, 4);
  const packed = deflateRawSync(content, { level: Math.abs(numberIn(level, 6) | 0) % 10 });
  return Buffer.concat([start, bytesIn(header), packed, end]);
}

function flip(bytes: Buffer, flips: unknown): void {
  for (const pair of Array.isArray(flips) ? flips.slice(0, 100) : []) {
    const [at, bits] = Array.isArray(pair) ? pair.map((each) => numberIn(each, 0) | 0) : [];
    const index = at === undefined || at >= 0 ? at : bytes.length + at;
    if (index !== undefined && index < bytes.length) bytes[index] = (bytes[index] ?? 0) ^ (bits ?? 1);
  }
}

/** Whether its archive is complete and undamaged, except for what may be missing at its end. */
const isSound = ({ members, flips, before, after }: Recipe): boolean =>
  objectsIn(members, 20).every(({ flags, header }) => !numberIn(flags, 0) && textIn(header) === "") &&
  (!Array.isArray(flips) || flips.length === 0) &&
  textIn(before) + textIn(after) === "";

async function check(input: Uint8Array): Promise<void> {
  const recipe = recipeIn(input);
  if (!recipe) return;
  const tar = tarIn(recipe);
  const files = await unpacked(archiveOf(recipe, tar));
  // A larger tar may be rejected because of how well it is compressed.
  if (tar.length > limits.ratioFloorBytes || !isSound(recipe)) return;
  const isCut = numberIn(recipe.cut, 0) >>> 0 > 0;
  // Where a member ends, the tar may be complete, too.
  if (isCut && (!files || objectsIn(recipe.members, 20).length > 1)) return;
  const expected = await unpacked(gzipSync(tar));
  hold(Bun.deepEquals(files, expected), isCut ? "no files are missing" : "it does not matter how a tar is compressed");
}

/** What both accept, GNU tar unpacks in the same way. */
async function compare(input: Uint8Array): Promise<void> {
  const recipe = recipeIn(input);
  if (!recipe) return;
  const archive = archiveOf(recipe, tarIn(recipe));
  const ours = await unpacked(archive);
  const theirs = ours && (await unpackWithGnuTar(archive));
  if (theirs) hold(Bun.deepEquals(ours, theirs), "tar unpacks the same files");
}

const file = { path: "dir/file", body: "content" };
/** Unpacks to more than is allowed, or to more of its size than is allowed. */
const bombs = [
  { path: "zeros", body: "\0", times: 1_000_000 },
  { path: "words", body: "some words ", times: 15_000 },
];

export const untarGzipTarget: Target = {
  name: "untar-gzip",
  form: "json",
  seeds: [
    { entries: [file] },
    { entries: [file, { path: "b", body: "x", times: 600 }], members: [{ bytes: 700, level: 9 }, { level: 0 }] },
    { entries: [file], members: [{ bytes: 0 }, { bytes: 512 }, {}] },
    { entries: [file], members: [{ flags: 8, header: "name\0" }] },
    { entries: [file], members: [{ flags: 28, header: "\u0003\0abcname\0comment\0" }] },
    { entries: [file], cut: 9 },
    { entries: [file], cut: 60 },
    { entries: [file], flips: [[-1, 1]] },
    { entries: [file], flips: [[30, 255]] },
    { entries: [file], flips: [[0, 1]] },
    { entries: [file], after: "trailing" },
    { entries: [file], after: "\u001f\u008b\b\0" },
    { entries: [file], before: "\0" },
    ...bombs.map((bomb) => ({ entries: [bomb] })),
    { entries: [file, ...bombs], members: [{ bytes: 2048 }, { level: 1 }] },
  ].map((recipe) => JSON.stringify(recipe)),
  words: ["../../file", "/proc/self/cwd/file", "\u001f\u008b\b\0"],
  maxPumpedBytes: 16 * 1024,
  rounds: 400,
  check,
  compare,
};
