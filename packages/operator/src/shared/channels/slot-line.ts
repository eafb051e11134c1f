/**
 * The workspaces that wait for a slot. The namespace that holds the fewest slots is next; of those that hold equally many, the
 * one that was not given a slot for longest. Within a namespace, the one with the lowest rank is first. A namespace at its own
 * limit does not block others.
 */
import { namespaceOf, type Key } from "@pko/kube";

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

/** How a workspace joins the line. */
export interface Turn {
  /** The lowest in a namespace is first: a time, or 0. */
  readonly rank: number;
  /** When the wait began. */
  readonly since: number;
}

interface Waiting extends Turn {
  readonly key: Key;
}

export class SlotLine {
  readonly #shares: Shares;
  /** By namespace. None is empty. */
  readonly #lines = new Map<string, Waiting[]>();
  /** When each namespace was last given a slot: a serial number. It stays while the namespace does not wait. */
  readonly #served = new Map<string, number>();
  #serial = 0;
  readonly #keys = new Set<Key>();

  constructor(shares: Shares) {
    this.#shares = shares;
  }

  get size(): number {
    return this.#keys.size;
  }

  has(key: Key): boolean {
    return this.#keys.has(key);
  }

  namespaces(): readonly string[] {
    return [...this.#lines.keys()];
  }

  /** The number of waiting workspaces by namespace. */
  sizes(): ReadonlyMap<string, number> {
    return new Map([...this.#lines].map(([namespace, { length }]) => [namespace, length]));
  }

  /** When the longest wait began, by namespace. */
  longestWaits(): ReadonlyMap<string, number> {
    const earliest = (line: readonly Waiting[]): number => Math.min(...line.map(({ since }) => since));
    return new Map([...this.#lines].map(([namespace, line]) => [namespace, earliest(line)]));
  }

  add(key: Key, turn: Turn): void {
    if (this.has(key)) return;
    this.#keys.add(key);
    const line = this.#lines.get(namespaceOf(key)) ?? [];
    line.splice(firstAfter(line, turn), 0, { key, ...turn });
    this.#lines.set(namespaceOf(key), line);
  }

  remove(key: Key): void {
    if (!this.#keys.delete(key)) return;
    const namespace = namespaceOf(key);
    const line = this.#lines.get(namespace) ?? [];
    line.splice(
      line.findIndex((waiting) => waiting.key === key),
      1,
    );
    if (line.length === 0) this.#lines.delete(namespace);
  }

  clear(): void {
    this.#lines.clear();
    this.#keys.clear();
    this.#served.clear();
  }

  /** Removes and returns the workspace that is next; undefined if none waits whose namespace may have another slot. */
  take(): Key | undefined {
    const [first] = this.#lines.get(this.#next() ?? "") ?? [];
    if (!first) return undefined;
    this.#served.set(namespaceOf(first.key), ++this.#serial);
    this.remove(first.key);
    return first.key;
  }

  #next(): string | undefined {
    let next: string | undefined;
    for (const namespace of this.#lines.keys()) {
      const held = this.#shares.held(namespace);
      if (held >= this.#shares.limit(namespace)) continue;
      const fewer = next === undefined ? -1 : held - this.#shares.held(next);
      if (fewer < 0 || (fewer === 0 && this.#servedAt(namespace) < this.#servedAt(next ?? ""))) next = namespace;
    }
    return next;
  }

  #servedAt(namespace: string): number {
    return this.#served.get(namespace) ?? 0;
  }

  /** The place among all, if no slot were returned and nobody joined. */
  placeOf(key: Key): Place {
    const own = namespaceOf(key);
    const ahead = this.#aheadInNamespace(key);
    const level = this.#shares.held(own) + ahead;
    let position = ahead + 1;
    let isEarlier = true;
    for (const [namespace, { length }] of this.#lines) {
      if (namespace === own) isEarlier = false;
      else {
        const isFirst = this.#isFirst(namespace, { own, isEarlier });
        position += this.#servedBelow(namespace, { length, level: isFirst ? level + 1 : level });
      }
    }
    return { position, total: this.size };
  }

  /** Whether it comes before the other one when both hold equally many: then it was given a slot less recently. */
  #isFirst(namespace: string, { own, isEarlier }: { readonly own: string; readonly isEarlier: boolean }): boolean {
    const held = this.#shares.held(namespace) - this.#shares.held(own);
    const servedAt = this.#servedAt(namespace) - this.#servedAt(own);
    return held > 0 || (held === 0 && (servedAt < 0 || (servedAt === 0 && isEarlier)));
  }

  /** The place in its namespace, which is at its limit. */
  placeInNamespace(key: Key): Place {
    return { position: this.#aheadInNamespace(key) + 1, total: this.#lines.get(namespaceOf(key))?.length ?? 0 };
  }

  /** How many of a namespace get a slot before it holds `level` of them. */
  #servedBelow(namespace: string, { length, level }: { readonly length: number; readonly level: number }): number {
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

function firstAfter(line: readonly Waiting[], { rank }: Turn): number {
  let at = line.length;
  while (at > 0 && (line[at - 1]?.rank ?? 0) > rank) at--;
  return at;
}
