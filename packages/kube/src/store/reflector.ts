/** A reflector keeps a store of one kind's objects in sync with the API server. */
import type { Client } from "../client/client.ts";
import { systemClock, type Clock } from "../clock.ts";
import { orAborted } from "../client/requests/deadline.ts";
import { Feed, type FeedOptions } from "./feed.ts";
import { IndexedStore, type Indexers } from "./indexed-store.ts";
import type { KubeObject, Resource } from "../resource.ts";
import type { Reflector, ReflectorCounts } from "./store.ts";
import { productionTiming, type FeedTiming } from "./timing.ts";
import { trimmed } from "./trim.ts";

export interface ReflectorOptions<T extends KubeObject> {
  /** One watch for each namespace; a single watch of all namespaces if absent. */
  readonly namespaces?: readonly string[];
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly indexers?: Indexers<T>;
  /** Drops unused fields. Managed fields and kubectl's last-applied annotation are always dropped. */
  readonly trim?: (object: T) => T;
  /**
   * Whether an object is archived, which saves memory, and until when nothing is due for it, in milliseconds since the epoch.
   * Undefined for an object that controllers work on.
   */
  readonly archive?: (object: T) => number | undefined;
  /** Called for every failure that the reflector recovers from. */
  readonly onError?: (error: unknown, what: string) => void;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly timing?: Partial<FeedTiming>;
}

export function reflector<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  options: ReflectorOptions<T> = {},
): Reflector<T> {
  const { indexers, trim = (object: T) => object, onError: report, clock = systemClock } = options;
  const onError = (error: unknown, what: string): void => report?.(error, `${resource.plural}: ${what}`);
  const store = new IndexedStore<T>({ indexers, archive: options.archive, onError });
  const synced = Promise.withResolvers<void>();
  const shared: Omit<FeedOptions<T>, "namespace"> = {
    client,
    resource,
    labelSelector: options.labelSelector,
    fieldSelector: options.fieldSelector,
    store,
    trim(object) {
      try {
        return trim(trimmed(object));
      } catch (error) {
        onError(error, "trim failed");
        return object;
      }
    },
    clock,
    random: options.random ?? Math.random,
    timing: { ...productionTiming, ...options.timing },
    onError,
    onSync() {
      if (!feeds.every((feed) => feed.synced)) return;
      store.hasSynced = true;
      synced.resolve();
    },
  };
  const feeds = watchedNamespaces(resource, options).map((namespace) => new Feed<T>({ ...shared, namespace }));
  return {
    store,
    async run(signal) {
      await Promise.all(feeds.map((feed) => feed.run(signal)));
    },
    async waitForSync(signal) {
      await (signal ? orAborted(synced.promise, signal) : synced.promise);
    },
    get healthy() {
      return feeds.every((feed) => feed.healthy);
    },
    get counts() {
      return sum(feeds.map((feed) => feed.counts));
    },
  };
}

function watchedNamespaces(
  resource: Resource,
  { namespaces }: { readonly namespaces?: readonly string[] },
): (string | undefined)[] {
  if (namespaces === undefined || !resource.namespaced) return [undefined];
  // With an empty list nothing would ever sync; a caller that meant "all" would wait forever.
  if (namespaces.length === 0) throw new TypeError("namespaces: list at least one, or omit it to watch all");
  return [...new Set(namespaces)];
}

function sum(all: readonly ReflectorCounts[]): ReflectorCounts {
  const add = (field: keyof ReflectorCounts): number => all.reduce((total, counts) => total + counts[field], 0);
  return {
    lists: add("lists"),
    watches: add("watches"),
    comparisons: add("comparisons"),
    differences: add("differences"),
  };
}
