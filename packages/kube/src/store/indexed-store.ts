/** The store that a reflector fills. */
import { Archive, type Packed } from "./archive.ts";
import { keyOf, type Key, type KubeObject } from "../resource.ts";
import type { Change, ChangeListener, IndexFunction, Store } from "./store.ts";

export type Indexers<T> = Readonly<Record<string, IndexFunction<T>>>;

interface IndexedStoreOptions<T> {
  readonly indexers?: Indexers<T> | undefined;
  readonly archive?: ((object: T) => number | undefined) | undefined;
  /** Called when a listener or an index function throws: neither may stop the store. */
  readonly onError: (error: unknown, what: string) => void;
}

/** Most lists are short, and an array of a few keys takes less memory than a Set. */
type Index = Map<string, Key[]>;

/** An archived object. */
class Archived {
  readonly packed: Packed;
  readonly resourceVersion: string | undefined;
  readonly restsUntil: number;

  constructor(packed: Packed, resourceVersion: string | undefined, restsUntil: number) {
    this.packed = packed;
    this.resourceVersion = resourceVersion;
    this.restsUntil = restsUntil;
  }
}

/** An object as the store keeps it. */
export type Entry<T> = T | Archived;

export class IndexedStore<T extends KubeObject> implements Store<T> {
  readonly #entries = new Map<Key, Entry<T>>();
  readonly #archive = new Archive<T>();
  readonly #indexes = new Map<string, Index>();
  readonly #listeners = new Set<ChangeListener<T>>();
  readonly #options: IndexedStoreOptions<T>;
  hasSynced = false;

  constructor(options: IndexedStoreOptions<T>) {
    this.#options = options;
    for (const name of Object.keys(options.indexers ?? {})) this.#indexes.set(name, new Map());
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: Key): T | undefined {
    const entry = this.#entries.get(key);
    return entry && this.#read(entry);
  }

  list(): T[] {
    return Array.from(this.#entries.values(), (entry) => this.#read(entry));
  }

  active(): T[] {
    return [...this.#entries.values()].filter(isActive);
  }

  *archived(): Generator<readonly [Key, number]> {
    for (const [key, entry] of this.#entries) if (!isActive(entry)) yield [key, entry.restsUntil];
  }

  byIndex(name: string, value: string): T[] {
    return this.#indexed(name, value).map((entry) => this.#read(entry));
  }

  activeByIndex(name: string, value: string): T[] {
    return this.#indexed(name, value).filter(isActive);
  }

  #indexed(name: string, value: string): Entry<T>[] {
    const index = this.#indexes.get(name);
    if (!index) throw new TypeError(`the store has no index "${name}"`);
    return (index.get(value) ?? []).flatMap((key) => this.#entries.get(key) ?? []);
  }

  subscribe(listener: ChangeListener<T>): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Of one namespace, or all. */
  *keys(namespace?: string): Generator<Key> {
    for (const key of this.#entries.keys()) {
      if (namespace === undefined || key.startsWith(`${namespace}/`)) yield key;
    }
  }

  /** The entry of the object, if the store has it in this version. */
  entryOf({ metadata }: KubeObject, key: Key): Entry<T> | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    const { uid, resourceVersion } = metadata;
    // Another object of the same name has another version, too: to unpack the archived one for its UID would take long.
    if (entry instanceof Archived) return entry.resourceVersion === resourceVersion ? entry : undefined;
    const stored = entry.metadata;
    return stored.uid === uid && stored.resourceVersion === resourceVersion ? entry : undefined;
  }

  /** For `replace`: an archived object does not take its whole memory until then. */
  createEntry(object: T): Entry<T> {
    const restsUntil = this.#options.archive?.(object);
    if (restsUntil === undefined) return object;
    return new Archived(this.#archive.pack(object), object.metadata.resourceVersion, restsUntil);
  }

  /** Releases entries that were created for a `replace` that does not happen, because the list failed. */
  discard(entries: ReadonlyMap<Key, Entry<T>>): void {
    for (const [key, entry] of entries) {
      if (entry instanceof Archived && entry !== this.#entries.get(key)) this.#archive.release(entry.packed);
    }
  }

  set(object: T): void {
    this.#commit([[keyOf(object), this.createEntry(object)]]);
  }

  remove(key: Key): void {
    this.#commit([[key, undefined]]);
  }

  /** Replaces the objects of one namespace, or all, with these. */
  replace(entries: ReadonlyMap<Key, Entry<T>>, namespace?: string): void {
    const removed = [...this.keys(namespace)].filter((key) => !entries.has(key));
    this.#commit([...removed.map((key) => [key, undefined] as const), ...entries]);
  }

  #read(entry: Entry<T>): T {
    return isActive(entry) ? entry : this.#archive.unpack(entry.packed);
  }

  /** Makes all changes before it notifies: a listener sees the complete state. */
  #commit(wanted: readonly (readonly [Key, Entry<T> | undefined])[]): void {
    const changes: EntryChange<T>[] = [];
    for (const [key, after] of wanted) {
      const before = this.#entries.get(key);
      if (before === after) continue;
      this.#reindex(key, before && this.#read(before), after && this.#read(after));
      if (after) this.#entries.set(key, after);
      else this.#entries.delete(key);
      changes.push({ key, before, after });
    }
    for (const change of changes) this.#notify(change);
    for (const { before } of changes) if (before instanceof Archived) this.#archive.release(before.packed);
  }

  #notify(changed: EntryChange<T>): void {
    const change = this.#changeOf(changed);
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        this.#options.onError(error, "a listener failed");
      }
    }
  }

  /** Archived objects are unpacked only for a listener that reads them. */
  #changeOf({ key, before, after }: EntryChange<T>): Change<T> {
    const change = {
      key,
      ...(before && isActive(before) && { before }),
      ...(after && isActive(after) && { after }),
      ...(after instanceof Archived && { isArchived: true as const }),
    };
    for (const [name, entry] of [["before", before] as const, ["after", after] as const]) {
      if (!(entry instanceof Archived)) continue;
      const unpacked = this.#archive.unpack.bind(this.#archive, entry.packed);
      Object.defineProperty(change, name, { get: unpacked, enumerable: true });
    }
    return change;
  }

  #reindex(key: Key, before: T | undefined, after: T | undefined): void {
    for (const [name, index] of this.#indexes) {
      const from = before ? this.#indexValues(name, before) : [];
      const to = after ? this.#indexValues(name, after) : [];
      for (const value of from) if (!to.includes(value)) removeFrom(index, value, key);
      for (const value of to) if (!from.includes(value)) addTo(index, value, key);
    }
  }

  #indexValues(name: string, object: T): readonly string[] {
    try {
      return [...new Set(this.#options.indexers?.[name]?.(object) ?? [])];
    } catch (error) {
      this.#options.onError(error, `index "${name}" failed`);
      return [];
    }
  }
}

interface EntryChange<T> {
  readonly key: Key;
  readonly before: Entry<T> | undefined;
  readonly after: Entry<T> | undefined;
}

const isActive = <T>(entry: Entry<T>): entry is T => !(entry instanceof Archived);

function addTo(index: Index, value: string, key: Key): void {
  const keys = index.get(value);
  if (keys) keys.push(key);
  else index.set(value, [key]);
}

function removeFrom(index: Index, value: string, key: Key): void {
  const keys = index.get(value);
  const at = keys?.indexOf(key) ?? -1;
  if (at >= 0) keys?.splice(at, 1);
  if (keys?.length === 0) index.delete(value);
}
