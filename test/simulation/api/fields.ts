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

/** A leaf in a form that `===` compares: what is not a primitive as JSON, marked so that it equals no text. */
type Leaf = string | number | boolean | null | undefined;
type Leaves = ReadonlyMap<string, Leaf>;

/** Adds the leaves of a value by their paths. An empty map is a leaf. */
function collect(value: unknown, path: string, found: Map<string, Leaf>): void {
  if (!isMap(value)) return void found.set(path, leaf(value));
  const keys = Object.keys(value);
  if (keys.length === 0) found.set(path, leaf(value));
  for (const key of keys) collect(value[key], `${path}${separator}${key}`, found);
}

const leaf = (value: unknown): Leaf =>
  typeof value === "object" && value !== null ? `${separator}${JSON.stringify(value)}` : (value as Leaf);

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

const ownables = new WeakMap<JsonMap, Leaves>();

/** The leaves that a manager can own. An object is never changed, so they are collected once. */
function ownable(object: JsonMap): Leaves {
  const found = ownables.get(object) ?? collectOwnable(object);
  ownables.set(object, found);
  return found;
}

/** A copy that differs only in fields that nobody owns, such as its version. */
export function shareOwnable(object: JsonMap, copy: JsonMap): void {
  ownables.set(copy, ownable(object));
}

function collectOwnable(object: JsonMap): Leaves {
  const found = new Map<string, Leaf>();
  for (const [key, value] of Object.entries(object)) {
    if (key === "metadata" && isMap(value)) collectMetadata(value, found);
    else if (!unowned.has(key)) collect(value, key, found);
  }
  return found;
}

function collectMetadata(metadata: JsonMap, found: Map<string, Leaf>): void {
  for (const [key, value] of Object.entries(metadata)) {
    if (unownedMetadata.has(key)) continue;
    const path = `metadata${separator}${key}`;
    const items = elements(["metadata", key], value);
    if (items) for (const [item, each] of items) found.set(`${path}${separator}${item}`, leaf(each));
    else collect(value, path, found);
  }
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
  const object: Record<string, unknown> = { ...target };
  for (const { op, path, value } of operations) {
    const keys = path
      .slice(1)
      .split("/")
      .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
    const last = keys.pop() ?? "";
    let map = object;
    // What is on the way to the field is copied, and the rest shared: a stored object is never changed.
    for (const key of keys) {
      const child = map[key];
      if (!isMap(child)) return undefined;
      map[key] = { ...child };
      map = map[key] as Record<string, unknown>;
    }
    if (op !== "add" && !(last in map)) return undefined;
    if (op === "test" && JSON.stringify(map[last]) !== JSON.stringify(value)) return undefined;
    if (op === "add" || op === "replace") map[last] = value;
    if (op === "remove") delete map[last];
  }
  return object;
}
