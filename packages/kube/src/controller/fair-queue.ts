/**
 * A queue of keys that is fair between namespaces: namespaces with waiting keys take turns, and the keys of one namespace
 * are first in, first out. With n waiting namespaces, the key at position p of its namespace has at most p × n keys
 * before it, however many keys the others have: a tenant with a thousand keys delays one with a single key by one turn.
 */
import { namespaceOf, type Key } from "../resource.ts";

export interface FairQueue {
  /** Adds a key; false if it is already queued. */
  push(key: Key): boolean;
  /** Takes the next key, only from namespaces that `isEligible` accepts if it is given. */
  shift(isEligible?: (namespace: string) => boolean): Key | undefined;
  readonly size: number;
}

export function fairQueue(): FairQueue {
  const queued = new Set<Key>();
  const lines = new Map<string, Fifo<Key>>();
  /** The namespaces that have waiting keys, in the order of their turns. */
  const turns = new Fifo<string>();

  function namespaceLine(namespace: string): Fifo<Key> {
    const known = lines.get(namespace);
    if (known) return known;
    const line = new Fifo<Key>();
    lines.set(namespace, line);
    turns.push(namespace);
    return line;
  }

  return {
    push(key) {
      if (queued.has(key)) return false;
      queued.add(key);
      namespaceLine(namespaceOf(key)).push(key);
      return true;
    },
    shift(isEligible = () => true) {
      for (let waiting = turns.size; waiting > 0; waiting--) {
        const namespace = turns.shift() ?? "";
        const line = lines.get(namespace);
        const key = isEligible(namespace) ? line?.shift() : undefined;
        if (line && line.size > 0) turns.push(namespace);
        else lines.delete(namespace);
        if (key === undefined) continue;
        queued.delete(key);
        return key;
      }
      return undefined;
    },
    get size() {
      return queued.size;
    },
  };
}

/** First in, first out, in constant time. Taking the first item of a Set is slower: 100,000 keys took 1.5 s. */
class Fifo<T> {
  #items: T[] = [];
  #head = 0;

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    const item = this.#items[this.#head++];
    if (this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  get size(): number {
    return this.#items.length - this.#head;
  }
}
