/**
 * Packs objects that are kept for long and rarely read, such as the history of updates, to save memory
 * (docs/adr/0031-scale.md). Objects of one kind differ mostly in UIDs, digests, times and numbers, and in words that a caller knows, such as the
 * name of their owner. The former are the object's values; the rest of its JSON is a template that many objects share.
 */

/** UIDs, times, digests and numbers, but not that of an API version. */
const unique =
  /([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]+Z|[0-9a-f]{12,64}|\d{4,}|(?<=[:/])\d+)/;
/** Not in JSON: a control character is escaped there. */
const separator = "\u001f";
/** In a template, they stand for the words. */
const placeholders = ["\u0001", "\u0002", "\u0003", "\u0004"];
/** A template of so many objects is divided once, and not for each of them. */
const manyUses = 50;

interface Template {
  /** The texts between the values, joined: as a list they take more memory. */
  readonly text: string;
  parts?: readonly string[];
  uses: number;
}

export interface Packed {
  readonly template: Template;
  /** Each with a separator after it; an empty one is the same as the one before. */
  readonly values: string;
}

export class Archive<T extends object> {
  readonly #templates = new Map<string, Template>();

  get templates(): number {
    return this.#templates.size;
  }

  /** Objects that differ only in their values and words share a template. Of the words, only the first few are used. */
  pack(object: T, words: readonly string[] = []): Packed {
    let json = JSON.stringify(object);
    for (const [index, placeholder] of placeholders.entries()) {
      const word = words[index];
      if (word) json = json.replaceAll(word, placeholder);
    }
    // Texts and values in turn. Joined strings are copies, which do not keep the JSON alive.
    const pieces = json.split(unique);
    const texts = [pieces[0] ?? ""];
    const values: string[] = [];
    let before = "";
    for (let index = 1; index < pieces.length; index += 2) {
      const value = pieces[index] ?? "";
      values.push(value === before ? "" : value);
      before = value;
      texts.push(pieces[index + 1] ?? "");
    }
    values.push("");
    return { template: this.#use(texts.join(separator)), values: values.join(separator) };
  }

  /** With the words with which it was packed. */
  unpack({ template, values }: Packed, words: readonly string[] = []): T {
    const parts = partsOf(template);
    const given = values.split(separator);
    const pieces = [parts[0] ?? ""];
    let before = "";
    for (let index = 1; index < parts.length; index++) {
      before = given[index - 1] || before;
      pieces.push(before, parts[index] ?? "");
    }
    let json = pieces.join("");
    for (let index = placeholders.length - 1; index >= 0; index--) {
      const [word, placeholder] = [words[index], placeholders[index]];
      if (word && placeholder) json = json.split(placeholder).join(word);
    }
    return JSON.parse(json) as T;
  }

  /** A template without users is dropped. */
  release({ template }: Packed): void {
    template.uses--;
    if (template.uses === 0) this.#templates.delete(template.text);
  }

  #use(text: string): Template {
    const template = this.#templates.get(text) ?? { text, uses: 0 };
    if (template.uses === 0) this.#templates.set(template.text, template);
    template.uses++;
    return template;
  }
}

function partsOf(template: Template): readonly string[] {
  if (template.parts) return template.parts;
  const parts = template.text.split(separator);
  if (template.uses >= manyUses) template.parts = parts;
  return parts;
}
