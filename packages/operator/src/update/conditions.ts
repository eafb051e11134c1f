/** What other controllers read from an Update's status. */
import type { Update } from "@pko/api";

import { findCondition, isConditionTrue } from "../shared/conditions.ts";

export function isComplete(update: Update): boolean {
  return isConditionTrue(update, "Complete");
}

/** The Go operator records no end time if it did not see the end. */
export function endTimeOf(update: Update): string | undefined {
  const complete = isComplete(update) ? findCondition(update, "Complete") : undefined;
  return update.status?.endTime ?? complete?.lastTransitionTime;
}
