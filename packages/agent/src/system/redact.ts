/** Masks secrets: those of the requests, and environment variables whose names look secret. */
import type { Clean } from "./clean-text.ts";
import { secretForms, isSecretName } from "./secret-forms.ts";

const mask = "[secret]";
/** Variables are only likely to be secret: a short demo passphrase should not mask parts of the CLI's output. */
const minVariableLength = 8;
/** How many short-lived secrets are masked: more than the number of runs that are kept. */
const maxShortLived = 64;

/** A part of an output that was too long to keep. A secret may be cut in two at its start or end. */
export interface Excerpt {
  readonly text: string;
  readonly isCutAtStart?: boolean;
  readonly isCutAtEnd?: boolean;
}

export class Redactor {
  /** Each secret with all of its encodings. */
  readonly #permanent = new Map<string, readonly string[]>();
  readonly #shortLived = new Map<string, readonly string[]>();
  #forms: readonly string[] | undefined;

  add(...values: readonly (string | undefined)[]): void {
    for (const value of values) {
      if (value === undefined || this.#permanent.has(value)) continue;
      this.#permanent.set(value, formsOf(value));
      this.#forms = undefined;
    }
  }

  /** For secrets that are replaced often, such as access tokens: only the latest are masked. */
  addShortLived(value: string): void {
    if (this.#shortLived.has(value)) return;
    this.#shortLived.set(value, formsOf(value));
    const [oldest] = this.#shortLived.keys();
    if (this.#shortLived.size > maxShortLived && oldest !== undefined) this.#shortLived.delete(oldest);
    this.#forms = undefined;
  }

  /** `known`: the names of variables that certainly are secret. */
  addEnvironment(env: Readonly<Record<string, string | undefined>>, known: readonly string[] = []): void {
    for (const [name, value] of Object.entries(env)) {
      const isLikely = isSecretName(name) && (value?.length ?? 0) >= minVariableLength;
      if (isLikely || known.includes(name)) this.add(value);
    }
  }

  /** Masks secrets. Pass the complete text: a truncated secret is not recognized. */
  clean(from: string | Excerpt): Clean {
    // Longest first, because a secret may contain another one.
    this.#forms ??= [...new Set([...this.#permanent.values(), ...this.#shortLived.values()].flat())].toSorted(
      (a, b) => b.length - a.length,
    );
    const excerpt = typeof from === "string" ? { text: from } : from;
    let text = withoutColors(excerpt.text).toWellFormed();
    if (excerpt.isCutAtStart) text = maskStart(text, this.#forms);
    if (excerpt.isCutAtEnd) text = maskEnd(text, this.#forms);
    for (const form of this.#forms) {
      if (form.length <= text.length && text.includes(form)) text = text.replaceAll(form, mask);
    }
    return text as Clean;
  }
}

/** Also as they are in a text from which color codes were removed. */
function formsOf(value: string): readonly string[] {
  const shown = withoutColors(value).toWellFormed();
  return shown === value ? secretForms(value) : [...secretForms(value), ...secretForms(shown)];
}

/** Removes color codes, which some programs always print: one inside a secret would hide it. */
export function withoutColors(text: string): string {
  // oxlint-disable-next-line no-control-regex -- it must match escape sequences
  return text.replaceAll(/\u001B\[[0-9;]*[A-Za-z]/g, "");
}

/** Fewer characters of a secret reveal nothing, and occur in any text. */
const minEdge = 4;

/** Masks the end of a secret at the start of a truncated output. */
function maskStart(cutText: string, forms: readonly string[]): string {
  // An incomplete UTF-8 character.
  const text = cutText.replace(/^\uFFFD+/, "");
  let longest = minEdge - 1;
  for (const form of forms) {
    for (let length = Math.min(form.length, text.length); length > longest; length -= 1) {
      if (form.charCodeAt(form.length - length) === text.charCodeAt(0) && text.startsWith(form.slice(-length))) {
        longest = length;
      }
    }
  }
  return longest < minEdge ? text : mask + text.slice(longest);
}

/** Masks the start of a secret at the end of a truncated output. */
function maskEnd(cutText: string, forms: readonly string[]): string {
  const text = cutText.replace(/(?<!\uFFFD)\uFFFD+$/, "");
  const last = text.charCodeAt(text.length - 1);
  let longest = minEdge - 1;
  for (const form of forms) {
    for (let length = Math.min(form.length, text.length); length > longest; length -= 1) {
      if (form.charCodeAt(length - 1) === last && text.endsWith(form.slice(0, length))) longest = length;
    }
  }
  return longest < minEdge ? text : text.slice(0, -longest) + mask;
}
