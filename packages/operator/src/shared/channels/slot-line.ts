/**
 * The workspaces that wait for a slot. The namespace that holds the fewest slots is next; namespaces that hold equally many
 * take turns, and within a namespace, who has waited longest is first. A namespace at its own limit does not block others.
 */
import { parseKey, type Key } from "@pko/kube";

export interface Place {
  /** From 1. */
  readonly position: number;
  readonly total: number;
}

/** The slots that namespaces hold and may hold. */
export interface Shares {
  held(namespace: string): number;
  /** Infinity if there is none. */
  limit(namespace: string): number;
}

interface Waiting {
  readonly key: Key;
  readonly since: number;
}

export class SlotLine {
  readonly #shares: Shares;
  /** In the order of their turns. None is empty. */
  readonly #lines = new Map<string, Waiting[]>();
  readonly #since = new Map<Key, number>();

  constructor(shares: Shares) {
    this.#shares = shares;
  }

  get size(): number {
    return this.#since.size;
  }

  has(key: Key): boolean {
    return this.#since.has(key);
  }

  /** The number of waiting workspaces by namespace. */
  sizes(): ReadonlyMap<string, number> {
    return new Map([...this.#lines].map(([namespace, { length }]) => [namespace, length]));
  }

  add(key: Key, since: number): void {
    if (this.has(key)) return;
    this.#since.set(key, since);
    const line = this.#lines.get(namespaceOf(key)) ?? [];
    line.splice(firstAfter(line, since), 0, { key, since });
    this.#lines.set(namespaceOf(key), line);
  }

  remove(key: Key): void {
    if (!this.#since.delete(key)) return;
    const namespace = namespaceOf(key);
    const rest = (this.#lines.get(namespace) ?? []).filter((waiting) => waiting.key !== key);
    if (rest.length > 0) this.#lines.set(namespace, rest);
    else this.#lines.delete(namespace);
  }

  clear(): void {
    this.#lines.clear();
    this.#since.clear();
  }

  /** Removes and returns the workspace that is next; undefined if none waits whose namespace may have another slot. */
  take(): Key | undefined {
    let [next, fewest] = ["", Infinity];
    for (const namespace of this.#lines.keys()) {
      const held = this.#shares.held(namespace);
      if (held < fewest && held < this.#shares.limit(namespace)) [next, fewest] = [namespace, held];
    }
    const line = this.#lines.get(next);
    const first = line?.shift();
    if (!line || !first) return undefined;
    this.#since.delete(first.key);
    // The last in the order of turns.
    this.#lines.delete(next);
    if (line.length > 0) this.#lines.set(next, line);
    return first.key;
  }

  /** The place among all, if no slot were returned and nobody joined. */
  placeOf(key: Key): Place {
    const own = namespaceOf(key);
    const ahead = this.#aheadInNamespace(key);
    const level = this.#shares.held(own) + ahead;
    let position = ahead + 1;
    let isTurnOver = true;
    for (const [namespace, { length }] of this.#lines) {
      if (namespace === own) isTurnOver = false;
      else position += this.#served(namespace, { length, level: isTurnOver ? level + 1 : level });
    }
    return { position, total: this.size };
  }

  /** The place in its namespace, which is at its limit. */
  placeInNamespace(key: Key): Place {
    return { position: this.#aheadInNamespace(key) + 1, total: this.#lines.get(namespaceOf(key))?.length ?? 0 };
  }

  /** How many of a namespace get a slot before it holds `level` of them. */
  #served(namespace: string, { length, level }: { readonly length: number; readonly level: number }): number {
    const held = this.#shares.held(namespace);
    const free = this.#shares.limit(namespace) - held;
    return Math.max(0, Math.min(length, free, level - held));
  }

  #aheadInNamespace(key: Key): number {
    const line = this.#lines.get(namespaceOf(key)) ?? [];
    return Math.max(
      0,
      line.findIndex((waiting) => waiting.key === key),
    );
  }
}

function firstAfter(line: readonly Waiting[], since: number): number {
  let at = line.length;
  while (at > 0 && (line[at - 1]?.since ?? 0) > since) at--;
  return at;
}

export const namespaceOf = (key: Key): string => parseKey(key).namespace ?? "";
