/** Safe access to JSON and YAML of unknown shape. */

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function objectAt(value: unknown, key: string): JsonObject {
  const found = isObject(value) ? value[key] : undefined;
  return isObject(found) ? found : {};
}

export function arrayAt(value: unknown, key: string): readonly unknown[] {
  const found = isObject(value) ? value[key] : undefined;
  return Array.isArray(found) ? found : [];
}

/** Also undefined for an empty string: in Kubernetes files and responses that means "not set". */
export function textAt(value: unknown, key: string): string | undefined {
  const found = isObject(value) ? value[key] : undefined;
  return typeof found === "string" && found !== "" ? found : undefined;
}

export function numberAt(value: unknown, key: string): number | undefined {
  const found = isObject(value) ? value[key] : undefined;
  return typeof found === "number" ? found : undefined;
}

export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return value;
}

/** The API server validates objects against their schema before it stores them, so their type is not checked again. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller states what it expects
export function trusted<T>(value: unknown): T {
  return value as T;
}
