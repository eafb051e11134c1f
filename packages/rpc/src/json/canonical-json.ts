import { isRecord } from "./is-record.ts";

/** JSON with sorted keys, so that equal values have equal texts. Operator and agent store and compare hashes of it. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => (isRecord(inner) ? sortedMap(inner) : inner)) ?? "null";
}

function sortedMap(map: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  // Most maps are small or come from the API server, which sorts keys.
  const keys = Object.keys(map);
  if (keys.every((key, index) => index === 0 || (keys[index - 1] ?? "") < key)) return map;
  return Object.fromEntries(Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
