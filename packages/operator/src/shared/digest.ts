/** Digests of values. */
import { createHash } from "node:crypto";

import { canonicalJson } from "@pko/rpc";

/** Many of these are stored and compared, so a text must keep its hash. */
export function textHash(text: string, length: number): string {
  return createHash("sha256").update(text).digest("hex").slice(0, length);
}

/** The same for the same content, in whatever order its fields were written. */
export function contentHash(value: unknown): string {
  return textHash(canonicalJson(value), 32);
}
