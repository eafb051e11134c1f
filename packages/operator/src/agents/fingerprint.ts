/** The same for equal requests, whatever the order of their fields. A digest, because requests may contain secrets. */
import { createHash } from "node:crypto";

export function fingerprint(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value, sorted)).digest("hex");
}

function sorted(_: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
