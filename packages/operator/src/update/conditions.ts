/** When an Update ended, as its status reports it. */
import type { Update } from "@pko/api";

import { findCondition } from "../shared/conditions.ts";
import { isComplete } from "../shared/updates.ts";

/** The Go operator records no end time if it did not see the end. */
export function endTimeOf(update: Update): string | undefined {
  const complete = isComplete(update) ? findCondition(update, "Complete") : undefined;
  return update.status?.endTime ?? complete?.lastTransitionTime;
}
