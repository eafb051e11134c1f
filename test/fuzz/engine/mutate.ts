/** Random changes of inputs: of bytes, of text, and of the values in JSON. Reproducible by the seed of `random`. */
import type { SeededRandom } from "../../../packages/kube/testing/seeded-random.ts";

import { characters, numbers, pickFrom, type Material } from "./material.ts";
import { mutateJson } from "./mutate-json.ts";
import { defaultMaxBytes, type Target } from "./target.ts";

const defaultPumpedBytes = 128 * 1024;

export function mutated(input: Uint8Array, target: Target, material: Material): Uint8Array {
  const { random } = material;
  const { form, maxBytes = defaultMaxBytes, repair } = target;
  let result = form === "json" && random.next() < 0.85 ? mutateJson(input, material) : input;
  if (result === input) {
    for (let change = 1 + random.below(4); change > 0; change--) result = changeBytes(result, form, material);
  }
  // Half of a value would not be JSON.
  if (form !== "json") result = result.subarray(0, maxBytes);
  if (random.next() < 0.005) result = pump(result, target.maxPumpedBytes ?? defaultPumpedBytes, random);
  return repair && random.next() < 0.9 ? repair(Uint8Array.from(result)) : result;
}

type Change = (input: Uint8Array, material: Material) => Uint8Array;

const changes: readonly Change[] = [flipBit, setByte, remove, duplicate, insertWord, changeDigits, splice, swapBlocks];
const textChanges: readonly Change[] = [
  insertWord,
  insertWord,
  insertCharacter,
  changeDigits,
  remove,
  duplicate,
  splice,
];

function changeBytes(input: Uint8Array, form: Target["form"], material: Material): Uint8Array {
  const usable = form === "bytes" || material.random.next() < 0.2 ? changes : textChanges;
  return pickFrom(usable, material.random)(input, material);
}

/** Replaces `length` bytes. */
function replaced(input: Uint8Array, at: number, { length, by }: { length: number; by: Uint8Array }): Uint8Array {
  return Buffer.concat([input.subarray(0, at), by, input.subarray(at + length)]);
}

function range(input: Uint8Array, random: SeededRandom): { at: number; length: number } {
  const at = random.below(input.length + 1);
  const longest = pickFrom([4, 16, 64, 512], random);
  return { at, length: Math.min(input.length - at, 1 + random.below(longest)) };
}

function flipBit(input: Uint8Array, { random }: Material): Uint8Array {
  const result = Uint8Array.from(input);
  const at = random.below(input.length);
  result[at] = (result[at] ?? 0) ^ (1 << random.below(8));
  return result;
}

const interesting = [0, 1, 0x0a, 0x0d, 0x20, 0x22, 0x2f, 0x30, 0x39, 0x3d, 0x5c, 0x7f, 0x80, 0xff] as const;

function setByte(input: Uint8Array, { random }: Material): Uint8Array {
  const result = Uint8Array.from(input);
  result[random.below(input.length)] = random.next() < 0.5 ? pickFrom(interesting, random) : random.below(256);
  return result;
}

function remove(input: Uint8Array, { random }: Material): Uint8Array {
  const { at, length } = range(input, random);
  return replaced(input, at, { length, by: new Uint8Array() });
}

function duplicate(input: Uint8Array, { random }: Material): Uint8Array {
  const { at, length } = range(input, random);
  const part = input.subarray(at, at + length);
  const times = random.next() < 0.8 ? 1 : random.below(16);
  return replaced(input, random.below(input.length + 1), {
    length: 0,
    by: Buffer.concat(Array.from({ length: times }, () => part)),
  });
}

function insertWord(input: Uint8Array, { random, words }: Material): Uint8Array {
  const by = Buffer.from(pickFrom(words, random));
  const length = random.next() < 0.5 ? 0 : random.below(by.length + 1);
  return replaced(input, random.below(input.length + 1), { length, by });
}

function insertCharacter(input: Uint8Array, { random }: Material): Uint8Array {
  return replaced(input, random.below(input.length + 1), {
    length: random.below(2),
    by: Buffer.from(pickFrom(characters, random)),
  });
}

const moreNumbers = [...numbers, "9007199254740993", "0x10", "00", "1.5", "NaN", "777777777777", "ffff", "0000"];

function changeDigits(input: Uint8Array, { random }: Material): Uint8Array {
  const text = Buffer.from(input).toString("latin1");
  const found = [...text.matchAll(/[0-9a-f]+/g)];
  if (found.length === 0) return input;
  const { index, 0: digits } = pickFrom(found, random);
  const by = Buffer.from(pickFrom(moreNumbers, random));
  return replaced(input, index, { length: digits.length, by });
}

/** The start of one input and the end of another. */
function splice(input: Uint8Array, { random, inputs }: Material): Uint8Array {
  const other = pickFrom(inputs, random);
  return Buffer.concat([
    input.subarray(0, random.below(input.length + 1)),
    other.subarray(random.below(other.length + 1)),
  ]);
}

const blockBytes = 512;

/** For formats in blocks: moves one, or copies it from another input. */
function swapBlocks(input: Uint8Array, { random, inputs }: Material): Uint8Array {
  const from = random.next() < 0.5 ? input : pickFrom(inputs, random);
  const block = (bytes: Uint8Array): number => random.below(Math.ceil(bytes.length / blockBytes) + 1) * blockBytes;
  const start = block(from);
  return replaced(input, block(input), {
    length: pickFrom([0, blockBytes], random),
    by: from.subarray(start, start + blockBytes * (1 + random.below(2))),
  });
}

/** Repeats a short part very often. */
function pump(input: Uint8Array, size: number, random: SeededRandom): Uint8Array {
  const at = random.below(input.length);
  const part = input.subarray(at, at + 1 + random.below(pickFrom([1, 4, 24], random)));
  if (part.length === 0) return input;
  const times = Math.floor(size / part.length);
  return replaced(input, at, { length: 0, by: Buffer.concat(Array.from({ length: times }, () => part)) });
}
