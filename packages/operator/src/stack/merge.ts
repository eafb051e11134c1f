/** A strategic merge for a Workspace's spec: objects are merged, lists of named things by their names. */
import type { JsonObject, JsonValue } from "@pko/api";

/** The list's field → the key by which its items are told apart. Other lists are replaced. */
const listKeys: Readonly<Record<string, string>> = {
  env: "name",
  stacks: "name",
  config: "key",
  containers: "name",
  initContainers: "name",
  volumes: "name",
  volumeMounts: "mountPath",
  imagePullSecrets: "name",
  ports: "containerPort",
};

export function merged(base: JsonObject, overlay: JsonObject): JsonObject {
  const result: Record<string, JsonValue> = { ...base };
  for (const [field, value] of Object.entries(overlay)) {
    const under = result[field];
    if (value === null) delete result[field];
    else result[field] = under === undefined ? value : mergedValue(under, value, field);
  }
  return result;
}

function mergedValue(under: JsonValue, over: JsonValue, field: string): JsonValue {
  if (isObject(under) && isObject(over)) return merged(under, over);
  const key = listKeys[field];
  if (key !== undefined && Array.isArray(under) && Array.isArray(over)) return mergedLists(under, over, key);
  return over;
}

function mergedLists(under: readonly JsonValue[], over: readonly JsonValue[], key: string): JsonValue[] {
  const result = [...under];
  for (const item of over) {
    const at = result.findIndex((other) => isObject(item) && isObject(other) && other[key] === item[key]);
    const found = result[at];
    if (isObject(item) && isObject(found)) result[at] = merged(found, item);
    else result.push(item);
  }
  return result;
}

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether everything that is wanted is so; what others have added does not matter. */
export function covers(actual: JsonValue | undefined, wanted: JsonValue): boolean {
  if (Array.isArray(wanted)) {
    return Array.isArray(actual) && wanted.every((item) => actual.some((other) => covers(other, item)));
  }
  // Whether the API server keeps a null is its own affair.
  if (wanted === null) return actual === undefined || actual === null;
  if (!isObject(wanted)) return actual === wanted;
  return isObject(actual) && Object.entries(wanted).every(([field, value]) => covers(actual[field], value));
}
