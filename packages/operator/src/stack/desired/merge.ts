/**
 * Merges the Workspace template of a Stack into the generated Workspace spec. This is not `strategicMerge` of ../../shared:
 * directives and nulls in the pod template must reach the Workspace, whose controller applies them to the pod; and generated
 * elements stay in front of those of the template, since an environment variable may refer to one before it.
 */
import type { JsonObject, JsonValue } from "@pko/api";
import { isRecord } from "@pko/rpc";

/** The field of a list → the key of its items. Other lists are replaced. */
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

export function mergeTemplate(base: JsonObject, overlay: JsonObject): JsonObject {
  const result: Record<string, JsonValue> = { ...base };
  for (const [field, value] of Object.entries(overlay)) {
    const under = result[field];
    if (value === null) delete result[field];
    else result[field] = under === undefined ? value : mergeValues(under, value, field);
  }
  return result;
}

function mergeValues(under: JsonValue, over: JsonValue, field: string): JsonValue {
  if (isRecord(under) && isRecord(over)) return mergeTemplate(under, over);
  const key = listKeys[field];
  if (key !== undefined && Array.isArray(under) && Array.isArray(over)) return mergeLists(under, over, key);
  return over;
}

function mergeLists(under: readonly JsonValue[], over: readonly JsonValue[], key: string): JsonValue[] {
  const result = [...under];
  for (const item of over) {
    const at = result.findIndex((other) => isRecord(item) && isRecord(other) && other[key] === item[key]);
    const found = result[at];
    if (isRecord(item) && isRecord(found)) result[at] = mergeTemplate(found, item);
    else result.push(item);
  }
  return result;
}

/** Whether the object has everything that is wanted; it may have more, which others have added. */
export function covers(actual: JsonValue | undefined, wanted: JsonValue): boolean {
  if (Array.isArray(wanted)) {
    return Array.isArray(actual) && wanted.every((item) => actual.some((other) => covers(other, item)));
  }
  // The API server may keep a null or drop it.
  if (wanted === null) return actual === undefined || actual === null;
  if (!isRecord(wanted)) return actual === wanted;
  return isRecord(actual) && Object.entries(wanted).every(([field, value]) => covers(actual[field], value));
}
