/**
 * Strategic merge patch, as Kubernetes applies it to a pod template and to a Service: maps merge, most lists are
 * replaced, and some lists merge by a key of their elements. Directives in the patch:
 *
 *   null                         removes the field
 *   $patch: delete               removes the map, or the list's element with that key
 *   $patch: replace              replaces the map, or the list with such an element, by that of the patch
 *   $retainKeys: [a, b]          removes the fields that are not listed
 *   $deleteFromPrimitiveList/f   removes values from the list f
 *   $setElementOrder/f           puts the elements of the list f into this order
 *
 * test/integration/workspace compares it with the API server's own merge.
 */
import { isRecord } from "@pko/rpc";

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
export type JsonMap = { [key: string]: Json };

/** How the fields of a map are merged. A field that is not listed is merged if it is a map, and otherwise replaced. */
interface MergeSchema {
  readonly fields?: Readonly<Record<string, MergeSchema>>;
  /** On a list of maps: the field that identifies an element. */
  readonly mergeKey?: string;
  /** On a list of scalars: the values of the patch are added. */
  readonly addValues?: true;
}

const keyed = (mergeKey: string, fields: MergeSchema["fields"] = {}): MergeSchema => ({ mergeKey, fields });

const container: NonNullable<MergeSchema["fields"]> = {
  env: keyed("name"),
  ports: keyed("containerPort"),
  volumeMounts: keyed("mountPath"),
  volumeDevices: keyed("devicePath"),
};

const metadata: MergeSchema = { fields: { finalizers: { addValues: true }, ownerReferences: keyed("uid") } };

export const podTemplateSchema: MergeSchema = {
  fields: {
    metadata,
    spec: {
      fields: {
        containers: keyed("name", container),
        initContainers: keyed("name", container),
        ephemeralContainers: keyed("name", container),
        volumes: keyed("name"),
        imagePullSecrets: keyed("name"),
        hostAliases: keyed("ip"),
        topologySpreadConstraints: keyed("topologyKey"),
        schedulingGates: keyed("name"),
        resourceClaims: keyed("name"),
      },
    },
  },
};

export const serviceSchema: MergeSchema = { fields: { metadata, spec: { fields: { ports: keyed("port") } } } };

/** The API server would reject the patch, too. */
export class MergeError extends Error {}

const patchDirective = "$patch";
const retainKeys = "$retainKeys";
const deleteFrom = "$deleteFromPrimitiveList/";
const elementOrder = "$setElementOrder/";

export function strategicMerge(original: JsonMap, patch: JsonMap, schema: MergeSchema): JsonMap {
  return mergeMaps(original, patch, { schema, path: "" });
}

interface Place {
  readonly schema: MergeSchema;
  readonly path: string;
}

const below = ({ schema, path }: Place, field: string): Place => ({
  schema: schema.fields?.[field] ?? {},
  path: path === "" ? field : `${path}.${field}`,
});

function mergeMaps(original: JsonMap, patch: JsonMap, place: Place): JsonMap {
  const { [patchDirective]: directive, [retainKeys]: retained, ...rest } = patch;
  if (directive === "replace") return rest;
  if (directive === "delete") return {};
  if (directive !== undefined && directive !== "merge") {
    throw new MergeError(`${place.path || "the template"}: $patch must be merge, replace or delete`);
  }
  const result = retained === undefined ? { ...original } : retain(original, retained, place);
  for (const [name, value] of Object.entries(rest)) {
    if (name.startsWith(deleteFrom) || name.startsWith(elementOrder)) continue;
    mergeField(result, { name, value }, below(place, name));
  }
  return withLists(result, original, { patch: rest, place });
}

function mergeField(result: JsonMap, { name, value }: { name: string; value: Json }, place: Place): void {
  const present = Object.hasOwn(result, name) ? result[name] : undefined;
  if (value === null) delete result[name];
  else if (isRecord(value) && isRecord(present)) result[name] = mergeMaps(present, value, place);
  else if (Array.isArray(value) && Array.isArray(present)) result[name] = mergeLists(present, value, place);
  else {
    const added = addition(value, place);
    if (added === undefined) delete result[name];
    else result[name] = added;
  }
}

/** The value of a field that the original does not have: the patch's, without directives, nulls and removals. */
function addition(value: Json, place: Place): Json | undefined {
  if (Array.isArray(value)) {
    if (place.schema.mergeKey !== undefined) for (const element of value) keyOfElement(element, place);
    return value.flatMap((element) => addition(element, { schema: {}, path: place.path }) ?? []);
  }
  if (!isRecord(value)) return value ?? undefined;
  const { [patchDirective]: directive, ...rest } = value;
  if (directive === "delete" || (directive !== undefined && Object.keys(rest).length === 0)) return undefined;
  const fields = Object.entries(rest).flatMap(([name, each]) => {
    const added = name.startsWith("$") ? undefined : addition(each, below(place, name));
    return added === undefined ? [] : [[name, added] as const];
  });
  return Object.fromEntries(fields);
}

/** Undefined for an element that is only a directive. */
function keyOfElement(element: Json, { schema, path }: Place): Json | undefined {
  const { mergeKey = "" } = schema;
  if (!isRecord(element)) throw new MergeError(`${path}: every element must be an object`);
  const key = element[mergeKey];
  if (key === undefined && element[patchDirective] !== "replace") {
    throw new MergeError(`${path}: every element must have the field ${mergeKey}`);
  }
  return key;
}

function mergeLists(original: readonly Json[], patch: readonly Json[], place: Place): Json[] {
  const { mergeKey, addValues } = place.schema;
  if (addValues) return inOrder([...new Set([...original, ...patch])], { first: patch, former: original, place });
  if (mergeKey === undefined) return [...patch];
  const keys = new Map(patch.map((element) => [element, keyOfElement(element, place)]));
  if ([...keys.values()].includes(undefined)) return patch.filter((element) => keys.get(element) !== undefined);
  let merged: Json[] = [...original];
  for (const element of patch) if (isRecord(element)) merged = mergeElement(merged, element, { ...place, mergeKey });
  return inOrder(merged, { first: patch, former: original, place });
}

interface Order {
  /** The elements in the patch, in its order. */
  readonly first: readonly Json[];
  /** The elements of the original, in its order. */
  readonly former: readonly Json[];
  readonly place: Place;
}

/**
 * Elements in the patch have the patch's order. Each other element comes before the first of them that it preceded in
 * the original. So an element that is new in the patch comes before those that are not in the patch.
 */
function inOrder(list: readonly Json[], { first, former, place }: Order): Json[] {
  const keyOf = (value: Json): Json | undefined =>
    place.schema.mergeKey !== undefined && isRecord(value) ? value[place.schema.mergeKey] : value;
  const named = new Map(first.map((value, index) => [keyOf(value), index]));
  const placeBefore = new Map(former.map((value, index) => [keyOf(value), index]));
  const rank = (value: Json): number => named.get(keyOf(value)) ?? 0;
  const result = list.filter((value) => named.has(keyOf(value))).toSorted((a, b) => rank(a) - rank(b));
  let from = 0;
  for (const value of list.filter((each) => !named.has(keyOf(each)))) {
    const position = placeBefore.get(keyOf(value)) ?? 0;
    const at = result.findIndex((each, index) => index >= from && (placeBefore.get(keyOf(each)) ?? -1) > position);
    result.splice(at < 0 ? result.length : at, 0, value);
    from = (at < 0 ? result.length - 1 : at) + 1;
  }
  return result;
}

function mergeElement(list: readonly Json[], element: JsonMap, place: Place & { readonly mergeKey: string }): Json[] {
  const { mergeKey, path } = place;
  const key = element[mergeKey];
  const at = list.findIndex((other) => isRecord(other) && other[mergeKey] === key);
  if (element[patchDirective] === "delete") return list.filter((other) => !isRecord(other) || other[mergeKey] !== key);
  const found = list[at];
  const fields: Place = { schema: { fields: place.schema.fields ?? {} }, path };
  if (isRecord(found)) return list.map((other) => (other === found ? mergeMaps(found, element, fields) : other));
  const added = addition(element, fields);
  return added === undefined ? [...list] : [...list, added];
}

function retain(original: JsonMap, retained: Json, { path }: Place): JsonMap {
  if (!Array.isArray(retained)) throw new MergeError(`${path}: $retainKeys must be a list`);
  return Object.fromEntries(Object.entries(original).filter(([name]) => retained.includes(name)));
}

/** Applies the directives about a list, after its elements have been merged. */
function withLists(result: JsonMap, original: JsonMap, { patch, place }: { patch: JsonMap; place: Place }): JsonMap {
  for (const [name, values] of Object.entries(patch)) {
    const field = name.slice(name.indexOf("/") + 1);
    const [list, before] = [result[field], original[field]];
    if (!Array.isArray(values) || !Array.isArray(list)) continue;
    if (name.startsWith(deleteFrom)) result[field] = list.filter((value) => !values.includes(value));
    if (name.startsWith(elementOrder)) {
      const former = Array.isArray(before) ? before : [];
      result[field] = inOrder(list, { first: values, former, place: below(place, field) });
    }
  }
  return result;
}
