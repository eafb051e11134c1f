/** Digests of values. */
import { createHash } from "node:crypto";

/** Many of these are stored and compared, so a text must keep its hash. */
export function textHash(text: string, length: number): string {
  return createHash("sha256").update(text).digest("hex").slice(0, length);
}

/** The same for the same content, in whatever order its fields were written. */
export function contentHash(value: unknown): string {
  return textHash(stableJson(value), 32);
}

function stableJson(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => {
    if (typeof each !== "object" || each === null || Array.isArray(each)) return each;
    return Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  });
}
