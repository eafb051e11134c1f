/** Digests that the agent stores or compares: SHA-256, in hex. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";

export function jsonDigest(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex");
}

/** With the name of the algorithm, for readers outside of the agent. */
export function textDigest(text: string): string {
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}

export async function fileDigest(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
