/**
 * Which manager owns which field, as far as the operator depends on it: an apply removes the fields that its manager applied
 * before and that no other manager owns. Lists are atomic, except finalizers (a set) and owner references (by UID).
 */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonMap = Readonly<Record<string, unknown>>;

/** The paths of the leaves that each manager owns, by manager. */
export type Managers = ReadonlyMap<string, ReadonlySet<string>>;

const separator = "\u0000";

export const isMap = (value: unknown): value is JsonMap =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Paths of leaves, with their values as JSON. An empty map is a leaf. */
export function leaves(value: unknown, path: readonly string[] = []): Map<string, string> {
  const found = new Map<string, string>();
  collect(value, path, found);
  return found;
}

function collect(value: unknown, path: readonly string[], found: Map<string, string>): void {
  if (isMap(value) && Object.keys(value).length > 0) {
    for (const [key, each] of Object.entries(value)) collect(each, [...path, key], found);
    return;
  }
  const items = elements(path, value);
  if (items) for (const [key, each] of items) found.set([...path, key].join(separator), JSON.stringify(each));
  else found.set(path.join(separator), JSON.stringify(value));
}

/** The elements of a list that managers own one by one; undefined for other values. */
function elements(path: readonly string[], value: unknown): [string, unknown][] | undefined {
  if (!Array.isArray(value) || path[0] !== "metadata" || path.length !== 2) return undefined;
  if (path[1] === "finalizers") return value.map((each: string) => [`=${each}`, each]);
  if (path[1] === "ownerReferences") return value.map((each: { uid: string }) => [`=${each.uid}`, each]);
  return undefined;
}

/** Fields that no manager owns. */
const unowned = new Set(["apiVersion", "kind"]);
const unownedMetadata = new Set([
  "name",
  "namespace",
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
  "managedFields",
  "selfLink",
]);

const ownables = new WeakMap<JsonMap, ReadonlyMap<string, string>>();

/** The leaves that a manager can own. An object is never changed, so they are collected once. */
function ownable(object: JsonMap): ReadonlyMap<string, string> {
  const found = ownables.get(object) ?? collectOwnable(object);
  ownables.set(object, found);
  return found;
}

function collectOwnable(object: JsonMap): ReadonlyMap<string, string> {
  const found = leaves(object);
  for (const path of found.keys()) {
    const [first = "", second = ""] = path.split(separator);
    if (unowned.has(first) || (first === "metadata" && (second === "" || unownedMetadata.has(second)))) {
      found.delete(path);
    }
  }
  return found;
}

/** After a create, a patch or an update: the manager owns what it has changed. */
export function managersAfterUpdate(
  managers: Managers,
  { manager, before, after }: { readonly manager: string; readonly before: JsonMap; readonly after: JsonMap },
): Managers {
  const [old, current] = [ownable(before), ownable(after)];
  const changed = new Set([...current].filter(([path, value]) => old.get(path) !== value).map(([path]) => path));
  const next = new Map<string, ReadonlySet<string>>();
  for (const [name, paths] of managers) {
    const kept = new Set([...paths].filter((path) => current.has(path) && !changed.has(path)));
    if (kept.size > 0) next.set(name, kept);
  }
  if (changed.size > 0) next.set(manager, new Set([...(next.get(manager) ?? []), ...changed]));
  return next;
}

interface Applied {
  readonly object: JsonMap;
  readonly managers: Managers;
}

export function applyFields(current: Applied, manager: string, body: JsonMap): Applied {
  const wanted = new Set(ownable(body).keys());
  const former = current.managers.get(manager) ?? new Set<string>();
  const others = new Set<string>();
  for (const [name, paths] of current.managers) if (name !== manager) for (const path of paths) others.add(path);
  let object = current.object;
  const owned = [...wanted, ...others];
  for (const path of former) {
    if (wanted.has(path) || others.has(path)) continue;
    const keys = path.split(separator);
    const list = keys.slice(0, -1);
    // If no manager owns an element any more, a list is removed with those that never had an owner: a deletion adds finalizers.
    const isElement = elements(list, []) !== undefined;
    const isUnowned = isElement && !owned.some((each) => each.startsWith(`${list.join(separator)}${separator}`));
    object = without(object, isUnowned ? list : keys);
  }
  const merged = merge(object, body, []) as JsonMap;
  const before = ownable(current.object);
  const after = ownable(merged);
  // Forced: what the apply changes is taken from other managers.
  const managers = new Map<string, ReadonlySet<string>>();
  for (const [name, paths] of current.managers) {
    if (name === manager) continue;
    const kept = new Set(
      [...paths].filter((path) => after.has(path) && (!wanted.has(path) || before.get(path) === after.get(path))),
    );
    if (kept.size > 0) managers.set(name, kept);
  }
  if (wanted.size > 0) managers.set(manager, wanted);
  return { object: merged, managers };
}

function merge(into: unknown, value: unknown, path: readonly string[]): unknown {
  if (isMap(value)) {
    const base = isMap(into) ? into : {};
    const merged: Record<string, unknown> = { ...base };
    for (const [key, each] of Object.entries(value)) {
      // As the API server does it: a null in an apply is as if the field were absent.
      if (each !== null) merged[key] = merge(base[key], each, [...path, key]);
    }
    return merged;
  }
  const items = elements(path, value);
  if (!items || !Array.isArray(into)) return value;
  const present = new Map(elements(path, into));
  for (const [key, each] of items) present.set(key, isMap(each) ? merge(present.get(key), each, []) : each);
  return [...present.values()];
}

/** Without the leaf, and without maps that become empty because of that. */
function without(object: JsonMap, [first = "", ...rest]: readonly string[], path: readonly string[] = []): JsonMap {
  if (!(first in object)) return object;
  const { [first]: value, ...others } = object;
  if (rest.length === 0) return others;
  const here = [...path, first];
  const items = elements(here, value);
  if (items) {
    const kept = items.filter(([key]) => key !== rest[0]).map(([, each]) => each);
    return kept.length > 0 ? { ...object, [first]: kept } : others;
  }
  if (!isMap(value)) return object;
  const reduced = without(value, rest, here);
  return Object.keys(reduced).length > 0 ? { ...object, [first]: reduced } : others;
}

/** RFC 7386. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isMap(patch)) return patch;
  const result: Record<string, unknown> = { ...(isMap(target) ? target : {}) };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = mergePatch(result[key], value);
  }
  return result;
}

interface JsonPatchOperation {
  readonly op: string;
  readonly path: string;
  readonly value?: unknown;
}

/** The operations of RFC 6902 that the operator uses. Undefined if a test fails or a path does not exist. */
export function jsonPatch(target: JsonMap, operations: readonly JsonPatchOperation[]): JsonMap | undefined {
  const object = structuredClone(target) as Record<string, unknown>;
  for (const { op, path, value } of operations) {
    const keys = path
      .slice(1)
      .split("/")
      .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
    const last = keys.pop() ?? "";
    let parent: unknown = object;
    for (const key of keys) parent = isMap(parent) ? parent[key] : undefined;
    if (!isMap(parent)) return undefined;
    const map = parent as Record<string, unknown>;
    if (op !== "add" && !(last in map)) return undefined;
    if (op === "test" && JSON.stringify(map[last]) !== JSON.stringify(value)) return undefined;
    if (op === "add" || op === "replace") map[last] = value;
    if (op === "remove") delete map[last];
  }
  return object;
}
