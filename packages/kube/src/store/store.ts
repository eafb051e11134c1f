/** A read-only view of every object of one kind, which a reflector keeps in sync with the API server. */
import type { Key, KubeObject } from "../resource.ts";

/** One change of one object. `before` is absent on creation, `after` on deletion. */
export interface Change<T> {
  readonly key: Key;
  readonly before?: T;
  readonly after?: T;
}

export type ChangeListener<T> = (change: Change<T>) => void;

export interface Store<T extends KubeObject> {
  get(key: Key): T | undefined;
  list(): T[];
  readonly size: number;
  /** The objects for which the index function returned `value`. Throws if the index does not exist. */
  byIndex(index: string, value: string): T[];
  /** Those that are not archived. An archived object is unpacked each time it is read. */
  active(): T[];
  activeByIndex(index: string, value: string): T[];
  /** The keys of archived objects, with the time until which nothing is due for them. */
  archived(): Iterable<readonly [Key, number]>;
  /** The same for one object; undefined if it is not archived. */
  restsUntil(key: Key): number | undefined;
  /** True after the first list. */
  readonly hasSynced: boolean;
  /**
   * Calls `listener` for every change after the store has applied it, but not for the archived objects of the first list. Reading an
   * archived object of a change unpacks it. Returns a function that ends the subscription.
   */
  subscribe(listener: ChangeListener<T>): () => void;
}

/** The values under which an object is found in an index. */
export type IndexFunction<T> = (object: T) => readonly string[];

export interface ReflectorCounts {
  /** Lists of all objects. */
  readonly lists: number;
  readonly watches: number;
  /** Comparisons of the store with the versions in the API server. */
  readonly comparisons: number;
  /** Comparisons that found a difference: an event was lost or arrived at that moment. */
  readonly differences: number;
}

/** Keeps a store in sync. `healthy` is false when the watch has been silent or broken for too long. */
export interface Reflector<T extends KubeObject> {
  readonly store: Store<T>;
  /** Runs until the signal aborts; never throws. */
  run(signal: AbortSignal): Promise<void>;
  /** Rejects with the signal's reason when that aborts first. */
  waitForSync(signal?: AbortSignal): Promise<void>;
  readonly healthy: boolean;
  /** For metrics. */
  readonly counts: ReflectorCounts;
}
