/** The inputs in the tree: for each target, those that found something, and a few that together reach most of its code. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";

import type { Target } from "./target.ts";

export interface Corpus {
  /** By what they found. */
  readonly found: Readonly<Record<string, string>>;
  readonly reaching: readonly string[];
}

export const corpusFile = (target: string): string => join(import.meta.dir, `../corpus/${target}.json`);

export function readCorpus(target: string): Corpus {
  const file = corpusFile(target);
  if (!existsSync(file)) return { found: {}, reaching: [] };
  return JSON.parse(readFileSync(file, "utf8")) as Corpus;
}

export function corpusInputs({ found, reaching }: Corpus): Uint8Array[] {
  return [...Object.values(found), ...reaching].map(decodeInput);
}

/** What others read with the source code stays small: few inputs, and in total at most about 20 KB for each target. */
const maxKept = 12;
const maxKeptChars: Readonly<Record<Target["form"], number>> = { text: 400, json: 400, bytes: 1200 };

/** Those of the inputs that are small, the ones that reach most last, without the seeds of the target. */
export function smallCorpus(target: Pick<Target, "form" | "seeds">, { found, reaching }: Corpus): Corpus {
  const present = new Set(Object.values(found));
  for (const seed of target.seeds) present.add(encodeInput(Buffer.from(seed as string)));
  const small = reaching.filter((input) => input.length <= maxKeptChars[target.form] && !present.has(input));
  return { found, reaching: small.slice(-maxKept) };
}

/** `base64 -d` and `gunzip` make both readable. */
const binary = "base64:";
const compressed = "gzip:";

/** Readable if it is text; compressed if that is shorter, as for a tar, which is mostly zeros. */
export function encodeInput(input: Uint8Array): string {
  return asText(input) ?? asGzip(input) ?? binary + Buffer.from(input).toString("base64");
}

function asText(input: Uint8Array): string | undefined {
  const text = Buffer.from(input).toString("utf8");
  const isText = Buffer.from(text).equals(input) && !text.startsWith(binary) && !text.startsWith(compressed);
  // oxlint-disable-next-line no-control-regex -- text with other control characters is not readable
  return isText && !/[\u0000-\u0008\u000E-\u001F]/.test(text) ? text : undefined;
}

function asGzip(input: Uint8Array): string | undefined {
  const packed = gzipSync(input, { level: 9 });
  return packed.length < input.length ? compressed + packed.toString("base64") : undefined;
}

export function decodeInput(text: string): Uint8Array {
  if (text.startsWith(compressed)) return gunzipSync(Buffer.from(text.slice(compressed.length), "base64"));
  return text.startsWith(binary) ? Buffer.from(text.slice(binary.length), "base64") : Buffer.from(text);
}
