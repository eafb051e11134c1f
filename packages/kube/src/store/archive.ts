/**
 * Packs objects that are kept for long and rarely read, such as the history of updates, to save memory
 * (docs/adr/0031-scale.md). Objects of one kind differ mostly in UIDs, digests, times and numbers. These are its values; the rest of its JSON is a
 * template that many objects share.
 */

/** UIDs, times, digests and long numbers. */
const unique =
  /([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]+Z|[0-9a-f]{12,64}|\d{4,})/;
/** Not in JSON: a control character is escaped there. */
const separator = "\u001f";

interface Template {
  /** The texts between the values, joined: as a list they would take more than twice the memory. */
  readonly text: string;
  uses: number;
}

export interface Packed {
  readonly template: Template;
  /** Joined; an empty one is the same as the one before. */
  readonly values: string;
}

export class Archive<T extends object> {
  readonly #templates = new Map<string, Template>();

  get templates(): number {
    return this.#templates.size;
  }

  pack(object: T): Packed {
    const pieces = JSON.stringify(object).split(unique);
    let [parts, values, before] = ["", "", ""];
    for (let index = 0; index < pieces.length; index++) {
      const piece = pieces[index] ?? "";
      if (index % 2 === 0) {
        parts += index === 0 ? piece : separator + piece;
        continue;
      }
      values += (index === 1 ? "" : separator) + (piece === before ? "" : piece);
      before = piece;
    }
    return { template: this.#use(parts), values: flat(values) };
  }

  unpack({ template, values }: Packed): T {
    const parts = template.text.split(separator);
    let text = parts[0] ?? "";
    let before = "";
    const given = values.split(separator);
    for (let index = 1; index < parts.length; index++) {
      before = given[index - 1] || before;
      text += before + (parts[index] ?? "");
    }
    return JSON.parse(text) as T;
  }

  /** A template without users is dropped. */
  release({ template }: Packed): void {
    template.uses--;
    if (template.uses === 0) this.#templates.delete(template.text);
  }

  #use(text: string): Template {
    const template = this.#templates.get(text) ?? { text: flat(text), uses: 0 };
    this.#templates.set(template.text, template);
    template.uses++;
    return template;
  }
}

/** A copy that does not keep the texts alive of which it was concatenated. */
const flat = (text: string): string => Buffer.from(text).toString();
