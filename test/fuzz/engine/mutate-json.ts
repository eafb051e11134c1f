/** Random changes of the values in JSON. */
import type { SeededRandom } from "../../../packages/kube/testing/seeded-random.ts";

import { characters, numbers, pickFrom, type Material } from "./material.ts";
import { jsonOf, secret } from "./target.ts";

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** Stands for a value that is nested so deeply that JSON.stringify would fail. */
const deepMarker = "\u0001deep\u0001";

/** Programs in Go, such as Pulumi and the API server, write and accept at most 10,000 levels. */
const depths = [10, 70, 1000, 10_000];

/** The input itself if it is not JSON. */
export function mutateJson(input: Uint8Array, material: Material): Uint8Array {
  const { random } = material;
  let value = jsonOf(input) as Json | undefined;
  if (value === undefined) return input;
  for (let change = 1 + random.below(3); change > 0; change--) value = changeOne(value, material);
  const text = JSON.stringify(value);
  if (!text.includes("\\u0001deep\\u0001")) return Buffer.from(text);
  const depth = pickFrom(depths, random);
  const [open, close] = pickFrom(
    [
      ["[", "]"],
      ['{"a":', "}"],
    ] as const,
    random,
  );
  return Buffer.from(text.replaceAll('"\\u0001deep\\u0001"', () => `${open.repeat(depth)}1${close.repeat(depth)}`));
}

function changeOne(value: Json, material: Material): Json {
  const { random } = material;
  if (typeof value === "string" && random.next() < 0.8) return changeText(value, material);
  if (typeof value !== "object" || value === null || random.next() < 0.07) return anyValue(material);
  return Array.isArray(value)
    ? changeList(value as readonly Json[], material)
    : changeObject(value as Readonly<Record<string, Json>>, material);
}

function changeList(list: readonly Json[], material: Material): Json {
  const { random } = material;
  const at = random.below(list.length);
  const choice = random.next();
  if (list.length === 0 || choice < 0.1) return [...list, anyValue(material)];
  const item = list[at] as Json;
  if (choice < 0.2) return list.toSpliced(at, 1);
  if (choice < 0.35) return list.toSpliced(at, 0, ...Array.from({ length: 1 + random.below(4) }, () => item));
  return list.with(at, changeOne(item, material));
}

function changeObject(object: Readonly<Record<string, Json>>, material: Material): Json {
  const { random, words } = material;
  const names = Object.keys(object);
  const name = names.length === 0 ? "" : pickFrom(names, random);
  const choice = random.next();
  if (names.length === 0 || choice < 0.15) return { ...object, [pickFrom(words, random)]: anyValue(material) };
  if (choice < 0.25) return Object.fromEntries(Object.entries(object).filter(([each]) => each !== name));
  if (choice < 0.3) {
    const renamed = changeText(name, material);
    return Object.fromEntries(Object.entries(object).map(([each, value]) => [each === name ? renamed : each, value]));
  }
  return { ...object, [name]: changeOne(object[name] as Json, material) };
}

const values: readonly Json[] = [null, true, false, "", [], {}, [[]], deepMarker, secret, { __proto__: null }];

function anyValue(material: Material): Json {
  const { random, words, inputs } = material;
  switch (random.below(5)) {
    case 0:
      return pickFrom(words, random);
    case 1:
      return finite(Number(pickFrom(numbers, random)));
    case 2:
      return partOf((jsonOf(pickFrom(inputs, random)) ?? null) as Json, random);
    default:
      return pickFrom(values, random);
  }
}

const finite = (value: number): number => (Number.isFinite(value) ? value : Number.MAX_VALUE);

/** A random part of a value of another input. */
function partOf(value: Json, random: SeededRandom): Json {
  if (typeof value !== "object" || value === null || random.next() < 0.3) return value;
  const parts = Object.values(value);
  return parts.length === 0 ? value : partOf(pickFrom(parts, random), random);
}

function changeText(text: string, { random, words }: Material): string {
  const at = random.below(text.length + 1);
  const insert = (part: string, length = 0): string => text.slice(0, at) + part + text.slice(at + length);
  switch (random.below(9)) {
    case 0:
      return pickFrom(words, random);
    case 1:
    case 2:
      return insert(pickFrom(words, random), random.below(3));
    case 3:
      return insert(secret);
    case 4:
      return insert(pickFrom(numbers, random), random.below(4));
    case 5:
      return text.slice(0, at);
    case 6:
      return insert(pickFrom(characters, random).repeat(pickFrom([1, 2, 300, 5000], random)));
    // Half of a character.
    case 7:
      return insert("\uD83D");
    default:
      return insert(pickFrom(characters, random), random.below(2));
  }
}
