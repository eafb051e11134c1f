/** Bitbucket identifies a status by a key of limited length. */
import { createHash } from "node:crypto";

export function statusKey(context: string, maxLength: number): string {
  return context.length <= maxLength ? context : createHash("sha256").update(context).digest("hex").slice(0, 40);
}
