/** The store that a reflector fills. */
import { keyOf, type Key, type KubeObject } from "../resource.ts";
import type { Change, ChangeListener, IndexFunction, Store } from "./store.ts";

export type Indexers<T> = Readonly<Record<string, IndexFunction<T>>>;

interface IndexedStoreOptions<T> {
  readonly indexers?: Indexers<T> | undefined;
  /** Called when a listener or an index function throws: neither may stop the store. */
  readonly onError: (error: unknown, what: string) => void;
}

type Index = Map<string, Set<Key>>;

export class IndexedStore<T extends KubeObject> implements Store<T> {
  readonly #objects = new Map<Key, T>();
  readonly #indexes = new Map<string, Index>();
  readonly #listeners = new Set<ChangeListener<T>>();
  readonly #options: IndexedStoreOptions<T>;
  hasSynced = false;

  constructor(options: IndexedStoreOptions<T>) {
    this.#options = options;
    for (const name of Object.keys(options.indexers ?? {})) this.#indexes.set(name, new Map());
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: Key): T | undefined {
    return this.#objects.get(key);
  }

  list(): T[] {
    return [...this.#objects.values()];
  }

  /** Of the objects in `scope`. */
  *keys(scope: (object: T) => boolean): Iterable<Key> {
    for (const [key, object] of this.#objects) if (scope(object)) yield key;
  }

  byIndex(name: string, value: string): T[] {
    const index = this.#indexes.get(name);
    if (!index) throw new TypeError(`the store has no index "${name}"`);
    return [...(index.get(value) ?? [])].flatMap((key) => this.#objects.get(key) ?? []);
  }

  subscribe(listener: ChangeListener<T>): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  set(object: T): void {
    this.#commit([{ key: keyOf(object), after: object }]);
  }

  remove(key: Key): void {
    this.#commit([{ key }]);
  }

  /** Replaces the objects in `scope` with these. */
  replace(objects: readonly T[], scope: (object: T) => boolean): void {
    const present = new Map(objects.map((object) => [keyOf(object), object]));
    const removed = this.list().filter((object) => scope(object) && !present.has(keyOf(object)));
    this.#commit([
      ...removed.map((object) => ({ key: keyOf(object) })),
      ...Array.from(present, ([key, after]) => ({ key, after })),
    ]);
  }

  /** Makes all changes before it notifies: a listener sees the complete state. */
  #commit(wanted: readonly Pick<Change<T>, "key" | "after">[]): void {
    const changes: Change<T>[] = [];
    for (const { key, after } of wanted) {
      const before = this.#objects.get(key);
      if (before === after) continue;
      if (before) this.#unindex(key, before);
      if (after) {
        this.#objects.set(key, after);
        this.#index(key, after);
      } else {
        this.#objects.delete(key);
      }
      changes.push({ key, ...(before && { before }), ...(after && { after }) });
    }
    for (const change of changes) this.#notify(change);
  }

  #notify(change: Change<T>): void {
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        this.#options.onError(error, "a listener failed");
      }
    }
  }

  #index(key: Key, object: T): void {
    for (const [name, index] of this.#indexes) {
      for (const value of this.#indexValues(name, object)) {
        const keys = index.get(value);
        if (keys) keys.add(key);
        else index.set(value, new Set([key]));
      }
    }
  }

  #unindex(key: Key, object: T): void {
    for (const [name, index] of this.#indexes) {
      for (const value of this.#indexValues(name, object)) {
        const keys = index.get(value);
        keys?.delete(key);
        if (keys?.size === 0) index.delete(value);
      }
    }
  }

  #indexValues(name: string, object: T): readonly string[] {
    try {
      return this.#options.indexers?.[name]?.(object) ?? [];
    } catch (error) {
      this.#options.onError(error, `index "${name}" failed`);
      return [];
    }
  }
}
