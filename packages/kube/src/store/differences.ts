/** What differs between a store and the API server, by the metadata of the objects. */
import type { Client, ListOptions } from "../client/client.ts";
import { isExpired } from "../client/errors.ts";
import { keyOf, metadataOf, type Key, type KubeObject, type Resource } from "../resource.ts";
import type { IndexedStore, Version } from "./indexed-store.ts";

export interface Differences {
  /** The version up to which the comparison is complete. */
  readonly version: string;
  /** With their versions in the API server. */
  readonly changed: ReadonlyMap<Key, Version>;
  readonly removed: readonly Key[];
  /** The watch has reported other changes since. */
  readonly isOvertaken?: true;
  /** The API server has an earlier version than before. */
  readonly isRestored?: true;
}

export const isDifferent = ({ changed, removed, isRestored }: Differences): boolean =>
  changed.size + removed.length > 0 || isRestored === true;

export interface Compared<T extends KubeObject> {
  readonly client: Client;
  readonly resource: Resource<T>;
  readonly store: IndexedStore<T>;
  readonly call: Omit<ListOptions, "transform">;
}

/**
 * Only what the watch has not reported since the comparison began: `reported` has the versions of these changes. A change that it has
 * reported before the one that the API server showed is not enough.
 */
export function unreported<T extends KubeObject>(
  found: Differences,
  store: IndexedStore<T>,
  reported: ReadonlyMap<Key, number>,
): Differences {
  const isAhead = (version = -1): boolean => version > Number(found.version);
  const isReported = ([key, version]: readonly [Key, Version]): boolean =>
    store.entryOf({ metadata: version }, key) !== undefined || isAhead(store.versionAt(key) ?? reported.get(key));
  const isStored = (key: Key): boolean => {
    const stored = store.versionAt(key);
    return stored !== undefined && !isAhead(stored);
  };
  return {
    ...found,
    changed: new Map([...found.changed].filter((change) => !isReported(change))),
    removed: found.removed.filter(isStored),
    ...(reported.size > 0 && { isOvertaken: true }),
  };
}

/** All objects, page by page, so that the memory that a comparison needs does not grow with their number. */
export async function findDifferences<T extends KubeObject>(
  { client, resource, store, call }: Compared<T>,
  limits: { readonly pageSize: number; readonly onPage: () => void },
): Promise<Differences> {
  const unseen = new Set(store.keys(call.namespace));
  const changed = new Map<Key, Version>();
  let version = "";
  const pageSize = unseen.size > limits.pageSize ? limits.pageSize : 0;
  for await (const page of client.pages(metadataOf(resource), { ...call, pageSize })) {
    limits.onPage();
    for (const listed of page.items) {
      const key = keyOf(listed);
      unseen.delete(key);
      if (!store.entryOf(listed, key)) changed.set(key, versionOf(listed));
    }
    version = page.resourceVersion;
  }
  return { version, changed, removed: [...unseen] };
}

/** Not all metadata, which would take much memory if everything differs. */
const versionOf = ({ metadata: { uid, resourceVersion } }: KubeObject): Version => ({ uid, resourceVersion });

/** The API server usually sends what it has within milliseconds. */
export const replaySeconds = 1;

/**
 * Only the objects that have changed since the store was equal to the API server at `from`: a second watch reports the changes since then
 * again. Undefined if the API server no longer has all of them.
 *
 * What it has not reported at the end, because its cache is late, belongs to the next comparison: that begins at the last version that it
 * has shown. So the comparison depends neither on a bookmark, which a kind without changes may not get, nor on the time.
 */
export async function replayDifferences<T extends KubeObject>(
  { client, resource, store, call }: Compared<T>,
  from: string,
): Promise<Differences | undefined> {
  const latest = new Map<Key, Version | "deleted">();
  let version = from;
  const replayed = { ...call, resourceVersion: from, serverTimeoutSeconds: replaySeconds };
  try {
    for await (const event of client.watch(metadataOf(resource), replayed)) {
      if (event.type === "BOOKMARK") {
        version = later(event.resourceVersion, version);
      } else {
        version = later(event.object.metadata.resourceVersion ?? "", version);
        latest.set(keyOf(event.object), event.type === "DELETED" ? "deleted" : versionOf(event.object));
      }
    }
  } catch (error) {
    if (isExpired(error)) return undefined;
    throw error;
  }
  const changed = new Map<Key, Version>();
  const removed: Key[] = [];
  for (const [key, last] of latest) {
    if (last === "deleted") removed.push(key);
    else changed.set(key, last);
  }
  return unreported({ version, changed, removed }, store, new Map());
}

/** Without a version, the other one. */
export const later = (one: string, other: string): string => (Number(one) > Number(other) ? one : other);
