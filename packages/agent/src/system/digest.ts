/** Digests that the agent stores or compares: SHA-256 of JSON, in hex. */
import { createHash } from "node:crypto";

export function jsonDigest(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex");
}
