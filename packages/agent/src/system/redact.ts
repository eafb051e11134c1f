/** Masks what must not be told: the secrets of the requests, and of the environment where its names say so. */

const mask = "[secret]";
/** Shorter ones are words of the language: masking them would make a log unreadable and hide nothing. */
const minLength = 6;
/** A variable is only likely to be a secret: a passphrase of a demonstration should not mask what the CLI says. */
const minVariableLength = 8;
/** Passing secrets that are still masked: more of them than runs are kept. */
const maxPassing = 64;
const secretName = /TOKEN|SECRET|PASSW|PASSPHRASE|PRIVATE|CREDENTIAL|API_?KEY|ACCESS_?KEY/i;

export class Redactor {
  readonly #secrets = new Set<string>();
  readonly #passing: string[] = [];
  #sorted: string[] | undefined;

  add(...values: readonly (string | undefined)[]): void {
    for (const value of values) {
      if (value === undefined) continue;
      this.#addOne(value.trim());
      // A tool that repeats a key or a kubeconfig does so line by line.
      if (value.includes("\n")) for (const line of value.split("\n")) this.#addOne(line.trim());
    }
  }

  /** One of many to come, each for a short time: the oldest are forgotten. */
  addPassing(value: string): void {
    if (this.#passing.includes(value)) return;
    this.add(value);
    this.#passing.push(value);
    if (this.#passing.length <= maxPassing) return;
    this.#secrets.delete(this.#passing.shift()?.trim() ?? "");
    this.#sorted = undefined;
  }

  /** `known`: the names of those that are secrets for certain. */
  addEnvironment(env: Readonly<Record<string, string | undefined>>, known: readonly string[] = []): void {
    for (const [name, value] of Object.entries(env)) {
      const isLikely = secretName.test(name) && (value?.length ?? 0) >= minVariableLength;
      if (isLikely || known.includes(name)) this.add(value);
    }
  }

  clean(text: string): string {
    // Longest first: a secret may hold another one.
    this.#sorted ??= [...this.#secrets].toSorted((a, b) => b.length - a.length);
    let cleaned = text;
    for (const secret of this.#sorted) if (cleaned.includes(secret)) cleaned = cleaned.replaceAll(secret, mask);
    return cleaned;
  }

  #addOne(secret: string): void {
    if (secret.length < minLength || this.#secrets.has(secret)) return;
    this.#secrets.add(secret);
    // As a JSON string spells it, for logs and events.
    const quoted = JSON.stringify(secret).slice(1, -1);
    if (quoted !== secret) this.#secrets.add(quoted);
    this.#sorted = undefined;
  }
}
