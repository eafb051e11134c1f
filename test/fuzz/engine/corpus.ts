/** The inputs in the tree: for each target, those that found something, and a few that together reach most of its code. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

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

const binary = "base64:";

/** Readable if it is text. */
export function encodeInput(input: Uint8Array): string {
  const text = Buffer.from(input).toString("utf8");
  const isText = Buffer.from(text).equals(input) && !text.startsWith(binary);
  // oxlint-disable-next-line no-control-regex -- text with other control characters is not readable
  return isText && !/[\u0000-\u0008\u000E-\u001F]/.test(text) ? text : binary + Buffer.from(input).toString("base64");
}

export function decodeInput(text: string): Uint8Array {
  return text.startsWith(binary) ? Buffer.from(text.slice(binary.length), "base64") : Buffer.from(text);
}
