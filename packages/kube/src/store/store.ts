/** A read-only view of every object of one kind, kept equal to the API server by a reflector. */
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
  /** The objects whose index function returned `value`. Throws for an index that was never declared. */
  byIndex(index: string, value: string): T[];
  /** True once the first list is in, for ever after. */
  readonly hasSynced: boolean;
  /** Called for every change after the store holds it. Returns a function that ends the subscription. */
  subscribe(listener: ChangeListener<T>): () => void;
}

/** The values under which an object is found in an index. */
export type IndexFunction<T> = (object: T) => readonly string[];

export interface ReflectorCounts {
  /** Times it read all objects. */
  readonly lists: number;
  readonly watches: number;
  /** Times it compared the store with the versions that the API server holds. */
  readonly comparisons: number;
  /** Comparisons that found a difference: an event was lost, or came at that moment. */
  readonly differences: number;
}

/** Keeps a store in step. `healthy` is false when the watch has been silent or broken for longer than it may be. */
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
