/** Whether an interrupted run may have left the lock of a Pulumi stack (docs/adr/0015-locks-and-lost-nodes.md). Pure. */
import type { Update } from "@pko/api";

import { findCondition } from "./objects/conditions.ts";

/** Reasons for which the CLI may not have removed its lock. A run that failed or succeeded has removed it. */
const lockingEnds: ReadonlySet<string> = new Set(["Aborted", "Canceled", "Unknown"]);

export function mayHaveLeftLock(update: Update): boolean {
  const failed = findCondition(update, "Failed");
  return update.status?.process !== undefined && failed?.status === "True" && lockingEnds.has(failed.reason);
}
