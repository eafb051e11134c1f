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

/** Archived objects with the same index values, such as the Updates of one Stack. */
interface Group {
  /** Identifies it. */
  readonly id: string;
  /** In the order of the indexes. */
  readonly indexValues: readonly (readonly string[])[];
  /** The parts of the index values, which occur in the objects, too. */
  readonly words: readonly string[];
  uses: number;
}

/** An archived object. There may be 100,000 of them, so it consists of few values. */
class Archived implements Packed {
  readonly template: Packed["template"];
  readonly values: string;
  readonly group: Group;
  readonly version: number | string;
  readonly restsUntil: number;

  constructor({ template, values }: Packed, group: Group, at: { version: number | string; restsUntil: number }) {
    this.template = template;
    this.values = values;
    this.group = group;
    this.version = at.version;
    this.restsUntil = at.restsUntil;
  }
}

/** Packed objects with equal values share their template, and those with equal index values their group. */
const isSamePacked = (a: Archived, b: Archived): boolean =>
  a.values === b.values && a.template === b.template && a.group === b.group;

/** How many changes of a `replace` are reported at once. An archived object takes some 0.1 ms. */
const changesPerTurn = 500;

/** After a restore of etcd, another object of the same name may have the same resource version. */
export interface Version {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/** An object as the store keeps it. */
export type Entry<T> = T | Archived;

export class IndexedStore<T extends KubeObject> implements Store<T> {
  readonly #entries = new Map<Key, Entry<T>>();
  readonly #archive = new Archive<T>();
  readonly #groups = new Map<string, Group>();
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

  restsUntil(key: Key): number | undefined {
    const entry = this.#entries.get(key);
    return entry instanceof Archived ? entry.restsUntil : undefined;
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
  entryOf({ metadata }: { readonly metadata: Version }, key: Key): Entry<T> | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    const { uid, resourceVersion } = metadata;
    // Another object of the same name has another version, except after a restore: to unpack the archived one for its UID would take long.
    if (entry instanceof Archived) return entry.version === versionOf(resourceVersion) ? entry : undefined;
    const stored = entry.metadata;
    return stored.uid === uid && stored.resourceVersion === resourceVersion ? entry : undefined;
  }

  /** As a number; undefined if the store does not have it. */
  versionAt(key: Key): number | undefined {
    const entry = this.#entries.get(key);
    return entry && Number(isActive(entry) ? entry.metadata.resourceVersion : entry.version);
  }

  /**
   * For `replace`: an archived object does not take its whole memory until then. If the store has the same object already, its entry: after
   * a restore of etcd, when versions cannot be compared, thousands of archived objects need not be unpacked to find that they are the same.
   */
  createEntry(object: T): Entry<T> {
    const restsUntil = this.#options.archive?.(object);
    if (restsUntil === undefined) return object;
    const group = this.#joinGroup(object);
    const version = versionOf(object.metadata.resourceVersion);
    const created = new Archived(this.#archive.pack(object, group.words), group, { version, restsUntil });
    const known = this.#entries.get(keyOf(object));
    if (!(known instanceof Archived) || !isSamePacked(known, created)) return created;
    this.#release(created);
    return known;
  }

  #joinGroup(object: T): Group {
    const indexValues = Array.from(this.#indexes.keys(), (name) => this.#indexValues(name, object));
    const id = JSON.stringify(indexValues);
    const group = this.#groups.get(id) ?? { id, indexValues, words: wordsIn(indexValues), uses: 0 };
    if (group.uses === 0) this.#groups.set(id, group);
    group.uses++;
    return group;
  }

  #release(entry: Entry<T> | undefined): void {
    if (!(entry instanceof Archived)) return;
    this.#archive.release(entry);
    entry.group.uses--;
    if (entry.group.uses === 0) this.#groups.delete(entry.group.id);
  }

  /** Releases entries that were created for a `replace` that does not happen, because the list failed. */
  discard(entries: ReadonlyMap<Key, Entry<T>>): void {
    for (const [key, entry] of entries) if (entry !== this.#entries.get(key)) this.#release(entry);
  }

  set(object: T): void {
    this.#report(this.#commit([[keyOf(object), this.createEntry(object)]]));
  }

  remove(key: Key): void {
    this.#report(this.#commit([[key, undefined]]));
  }

  /** Adds a page of the first list. Nothing is due for archived objects: they are not reported, and so not unpacked. */
  add(page: ReadonlyMap<Key, Entry<T>>): void {
    this.#report(this.#commit(page), ({ before, after }) => before !== undefined || !(after instanceof Archived));
  }

  /** Replaces the objects of one namespace, or all, with these. Many changes are reported in several turns of the event loop. */
  async replace(entries: ReadonlyMap<Key, Entry<T>>, namespace?: string): Promise<void> {
    const removed = [...this.keys(namespace)].filter((key) => !entries.has(key));
    const changes = this.#commit([...removed.map((key) => [key, undefined] as const), ...entries]);
    for (let start = 0; start < changes.length; start += changesPerTurn) {
      if (start > 0) await new Promise<void>((resolve) => void setImmediate(resolve));
      this.#report(changes.slice(start, start + changesPerTurn));
    }
  }

  #read(entry: Entry<T>): T {
    return isActive(entry) ? entry : this.#archive.unpack(entry, entry.group.words);
  }

  /** Makes all changes before any of them is reported: a listener sees the complete state. */
  #commit(wanted: Iterable<readonly [Key, Entry<T> | undefined]>): EntryChange<T>[] {
    const changes: EntryChange<T>[] = [];
    for (const [key, after] of wanted) {
      const before = this.#entries.get(key);
      if (before === after) continue;
      this.#reindex(key, before, after);
      if (after) this.#entries.set(key, after);
      else this.#entries.delete(key);
      changes.push({ key, before, after });
    }
    return changes;
  }

  #report(changes: readonly EntryChange<T>[], isReported: (change: EntryChange<T>) => boolean = () => true): void {
    for (const change of changes) if (isReported(change)) this.#notify(change);
    for (const { before } of changes) this.#release(before);
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

  /** Archived objects are unpacked only for a listener that reads them, and once for all listeners. */
  #changeOf({ key, before, after }: EntryChange<T>): Change<T> {
    const change: { -readonly [K in keyof Change<T>]: Change<T>[K] } = { key };
    if (before && isActive(before)) change.before = before;
    if (after && isActive(after)) change.after = after;
    if (before instanceof Archived) this.#defineUnpacked(change, "before", before);
    if (after instanceof Archived) this.#defineUnpacked(change, "after", after);
    return change;
  }

  #defineUnpacked(change: Change<T>, name: "before" | "after", entry: Archived): void {
    let unpacked: T | undefined;
    Object.defineProperty(change, name, { get: () => (unpacked ??= this.#read(entry)), enumerable: true });
  }

  #reindex(key: Key, before: Entry<T> | undefined, after: Entry<T> | undefined): void {
    let position = 0;
    for (const [name, index] of this.#indexes) {
      const from = this.#entryIndexValues(before, name, position);
      const to = this.#entryIndexValues(after, name, position);
      for (const value of from) if (!to.includes(value)) removeFrom(index, value, key);
      for (const value of to) if (!from.includes(value)) addTo(index, value, key);
      position++;
    }
  }

  #entryIndexValues(entry: Entry<T> | undefined, name: string, position: number): readonly string[] {
    if (!entry) return [];
    return isActive(entry) ? this.#indexValues(name, entry) : (entry.group.indexValues[position] ?? []);
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

/** A number takes no memory of its own. */
function versionOf(resourceVersion = ""): number | string {
  const version = Number(resourceVersion);
  return String(version) === resourceVersion ? version : resourceVersion;
}

/** The longest first, which may contain the others. */
function wordsIn(indexValues: readonly (readonly string[])[]): string[] {
  const words = new Set(indexValues.flat().flatMap((value) => value.split("/")));
  return [...words].filter((word) => word !== "").toSorted((a, b) => b.length - a.length);
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
