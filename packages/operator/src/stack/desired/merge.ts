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

const oneOf =
  (...names: readonly string[]) =>
  (name: string) =>
    names.includes(name);
const isHandler = oneOf("exec", "httpGet", "tcpSocket", "grpc", "sleep");

/**
 * The field of an object or list → which fields of the object, or of an item, exclude each other: the API server rejects two of
 * them, so one in the overlay replaces the others.
 */
const alternatives: Readonly<Record<string, (name: string) => boolean>> = {
  env: oneOf("value", "valueFrom"),
  valueFrom: oneOf("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"),
  // All fields but the name are types of volumes, except for directives.
  volumes: (name) => name !== "name" && !name.startsWith("$"),
  volumeMounts: oneOf("subPath", "subPathExpr"),
  livenessProbe: isHandler,
  readinessProbe: isHandler,
  startupProbe: isHandler,
  postStart: isHandler,
  preStop: isHandler,
};

/** Their fields belong together: another Secret must not be optional because the replaced one was. */
const isWhole = oneOf("configMapKeyRef", "secretKeyRef", "seccompProfile", "appArmorProfile");

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
  if (isRecord(under) && isRecord(over)) return isWhole(field) ? over : mergeObjects(under, over, field);
  const isKeyed = listKeys[field] !== undefined;
  if (isKeyed && Array.isArray(under) && Array.isArray(over)) return mergeLists(under, over, field);
  return over;
}

function mergeObjects(under: JsonObject, over: JsonObject, field: string): JsonObject {
  const isAlternative = alternatives[field] ?? (() => false);
  const isChosen = (name: string): boolean => isAlternative(name) && over[name] !== null;
  if (!Object.keys(over).some(isChosen)) return mergeTemplate(under, over);
  const kept = Object.entries(under).filter(([name]) => !isAlternative(name) || name in over);
  return mergeTemplate(Object.fromEntries(kept), over);
}

function mergeLists(under: readonly JsonValue[], over: readonly JsonValue[], field: string): JsonValue[] {
  const key = listKeys[field] ?? "";
  const result = [...under];
  for (const item of over) {
    const at = result.findIndex((other) => isRecord(item) && isRecord(other) && other[key] === item[key]);
    const found = result[at];
    if (isRecord(item) && isRecord(found)) result[at] = mergeObjects(found, item, field);
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
