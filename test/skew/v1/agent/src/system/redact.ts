/** Masks what must not be told: the secrets of the requests, and of the environment where its names say so. */
import type { Clean } from "./clean-text.ts";
import { formsOf, isSecretName } from "./secret-forms.ts";

const mask = "[secret]";
/** A variable is only likely to be a secret: a passphrase of a demonstration should not mask what the CLI says. */
const minVariableLength = 8;
/** Passing secrets that are still masked: more of them than runs are kept. */
const maxPassing = 64;

/** A part of an output that was too long to be kept. A secret may lie across its edge. */
export interface Excerpt {
  readonly text: string;
  readonly isCutAtStart?: boolean;
  readonly isCutAtEnd?: boolean;
}

export class Redactor {
  /** Each secret with all that it can look like. */
  readonly #lasting = new Map<string, readonly string[]>();
  readonly #passing = new Map<string, readonly string[]>();
  #forms: readonly string[] | undefined;

  add(...values: readonly (string | undefined)[]): void {
    for (const value of values) {
      if (value === undefined || this.#lasting.has(value)) continue;
      this.#lasting.set(value, formsOf(value));
      this.#forms = undefined;
    }
  }

  /** One of many to come, each for a short time: the oldest are forgotten. */
  addPassing(value: string): void {
    if (this.#passing.has(value)) return;
    this.#passing.set(value, formsOf(value));
    const [oldest] = this.#passing.keys();
    if (this.#passing.size > maxPassing && oldest !== undefined) this.#passing.delete(oldest);
    this.#forms = undefined;
  }

  /** `known`: the names of those that are secrets for certain. */
  addEnvironment(env: Readonly<Record<string, string | undefined>>, known: readonly string[] = []): void {
    for (const [name, value] of Object.entries(env)) {
      const isLikely = isSecretName(name) && (value?.length ?? 0) >= minVariableLength;
      if (isLikely || known.includes(name)) this.add(value);
    }
  }

  /** The whole text, before anything is cut from it: the only way to text that can be. */
  clean(from: string | Excerpt): Clean {
    // Longest first: a secret may hold another one.
    this.#forms ??= [...new Set([...this.#lasting.values(), ...this.#passing.values()].flat())].toSorted(
      (a, b) => b.length - a.length,
    );
    const excerpt = typeof from === "string" ? { text: from } : from;
    let text = withoutColours(excerpt.text).toWellFormed();
    if (excerpt.isCutAtStart) text = maskStart(text, this.#forms);
    if (excerpt.isCutAtEnd) text = maskEnd(text, this.#forms);
    for (const form of this.#forms) {
      if (form.length <= text.length && text.includes(form)) text = text.replaceAll(form, mask);
    }
    return text as Clean;
  }
}

/** Of programs that ask nobody whether they may. One in the middle of a secret would hide it from us. */
export function withoutColours(text: string): string {
  // oxlint-disable-next-line no-control-regex -- escape sequences are what this removes
  return text.replaceAll(/\u001B\[[0-9;]*[A-Za-z]/g, "");
}

/** Fewer characters of a secret than this tell nothing, and are found in any text. */
const minEdge = 4;

/** The text begins where an output was cut: with the end of a secret, perhaps. */
function maskStart(cutText: string, forms: readonly string[]): string {
  // A character of which bytes are missing.
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

function maskEnd(cutText: string, forms: readonly string[]): string {
  const text = cutText.replace(/\uFFFD+$/, "");
  const last = text.charCodeAt(text.length - 1);
  let longest = minEdge - 1;
  for (const form of forms) {
    for (let length = Math.min(form.length, text.length); length > longest; length -= 1) {
      if (form.charCodeAt(length - 1) === last && text.endsWith(form.slice(0, length))) longest = length;
    }
  }
  return longest < minEdge ? text : text.slice(0, -longest) + mask;
}
