import { isRecord } from "./is-record.ts";

/** JSON with sorted keys, so that equal values have equal texts. Operator and agent store and compare hashes of it. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => (isRecord(inner) ? sortedMap(inner) : inner)) ?? "null";
}

function sortedMap(map: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
