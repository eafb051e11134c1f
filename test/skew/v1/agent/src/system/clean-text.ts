/**
 * Text that may be shown. What a tool prints may quote a secret, and of a secret that has been cut the rest is not found
 * any more. So text is cleaned whole, and only then cut: everything here takes `Clean` text, which the Redactor alone makes.
 */
import { maxMessageChars } from "../../../rpc/src/index.ts";

declare const cleaned: unique symbol;
export type Clean = string & { readonly [cleaned]: true };

const ellipsis = "…";

/** At most `max` characters of it, with an ellipsis where there was more; never half of a character. */
export function cut(text: Clean, max: number): Clean {
  return cutName(text, max) as Clean;
}

/** Short enough for a message of the contract. */
export function bounded(text: Clean): Clean {
  return cut(text, maxMessageChars);
}

/** The last `max` characters. */
export function lastPart(text: Clean, max: number): Clean {
  if (text.length <= max) return text;
  const part = text.slice(-max);
  return (isLowSurrogate(part.charCodeAt(0)) ? part.slice(1) : part) as Clean;
}

/** Its lines, without those that are empty. */
export function linesOf(text: Clean): Clean[] {
  return text
    .split("\n")
    .map((line) => line.trimEnd() as Clean)
    .filter((line) => line !== "");
}

/** The last lines of an output that are worth showing, each bounded. */
export function lastLines(text: Clean, count: number, maxChars = 2_000): Clean[] {
  return linesOf(text)
    .slice(-count)
    .map((line) => cut(line, maxChars));
}

/** A line of the CLI as a part of a sentence. */
export function sentenceOf(line: Clean, max: number): Clean {
  return cut(line.trim().replace(/^error: /i, "") as Clean, max);
}

export function joined(parts: readonly Clean[], separator: string): Clean {
  return parts.join(separator) as Clean;
}

/** A sentence of ours about clean text: told`the CLI says ${line}`. */
export function told(words: TemplateStringsArray, ...values: readonly (Clean | number | NodeJS.Signals)[]): Clean {
  return words.map((word, index) => word + String(values[index] ?? "")).join("") as Clean;
}

/** For names, paths and keys that a request gives, which are no secrets. Text of other origin is cleaned, and `cut`. */
export function cutName(name: string, max: number): string {
  if (name.length <= max) return name.toWellFormed();
  const kept = name.slice(0, max - 1);
  const isSplit = isHighSurrogate(kept.charCodeAt(kept.length - 1));
  return (isSplit ? kept.slice(0, -1) : kept).toWellFormed() + ellipsis;
}

export function quoteName(name: string, max = 200): string {
  return JSON.stringify(cutName(name, max));
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}
