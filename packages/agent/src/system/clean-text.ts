/**
 * Text without secrets. A tool's output may quote a secret, and a truncated secret would not be recognized. So text is
 * cleaned first and truncated afterwards: the functions here take `Clean` text, which only the Redactor creates.
 */
import { maxMessageChars } from "@pko/records";

declare const cleaned: unique symbol;
export type Clean = string & { readonly [cleaned]: true };

const ellipsis = "…";

/** At most `max` characters, with an ellipsis if there were more. Never splits a character. */
export function truncate(text: Clean, max: number): Clean {
  return truncateName(text, max) as Clean;
}

/** Truncates to the longest message that the protocol allows. */
export function bounded(text: Clean): Clean {
  return truncate(text, maxMessageChars);
}

/** The last `max` characters. */
export function lastChars(text: Clean, max: number): Clean {
  if (text.length <= max) return text;
  const part = text.slice(-max);
  return (isLowSurrogate(part.charCodeAt(0)) ? part.slice(1) : part) as Clean;
}

export function nonEmptyLines(text: Clean): Clean[] {
  return text
    .split("\n")
    .map((line) => line.trimEnd() as Clean)
    .filter((line) => line !== "");
}

/** The last non-empty lines of an output, each truncated. */
export function lastLines(text: Clean, count: number, maxChars = 2_000): Clean[] {
  return nonEmptyLines(text)
    .slice(-count)
    .map((line) => truncate(line, maxChars));
}

/** Turns a line of the CLI into a part of a sentence. */
export function errorSentence(line: Clean, max: number): Clean {
  return truncate(line.trim().replace(/^error: /i, "") as Clean, max);
}

/** U+2800 is a letter without dots. Of the spaces, only the usual one is what it looks like. */
const hidden = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u{2800}]|(?! )\p{Zs}/gu;

/** For one line: without characters that could end it, reorder what is displayed, or are invisible. */
export function escapeControls(text: Clean): Clean {
  const escape = (char: string): string => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`;
  return text.toWellFormed().replace(hidden, escape) as Clean;
}

export function joinClean(parts: readonly Clean[], separator: string): Clean {
  return parts.join(separator) as Clean;
}

/** A template of clean text: cleanText`the CLI printed ${line}`. */
export function cleanText(parts: TemplateStringsArray, ...values: readonly (Clean | number | NodeJS.Signals)[]): Clean {
  return parts.map((part, index) => part + String(values[index] ?? "")).join("") as Clean;
}

/** For names, paths and keys from a request, which are not secret. Other text is cleaned, then truncated with `truncate`. */
export function truncateName(name: string, max: number): string {
  if (name.length <= max) return name.toWellFormed();
  const kept = name.slice(0, max - 1);
  const isSplit = isHighSurrogate(kept.charCodeAt(kept.length - 1));
  return (isSplit ? kept.slice(0, -1) : kept).toWellFormed() + ellipsis;
}

export function quoteName(name: string, max = 200): string {
  return JSON.stringify(truncateName(name, max));
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}
