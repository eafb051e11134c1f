/** Updates that say nothing about their commit, because they have no result and another one does. Pure. */
import { isComplete, type Update } from "@pko/api";

import { commitOf, isLater, isWithdrawn } from "../shared/updates.ts";
import { hasResult } from "./desired/commit-status.ts";

/** Whether the Update has not started, or was withdrawn before that, and another one before it has a result for the same commit. */
export function hasEarlierResult(update: Update, updates: readonly Update[]): boolean {
  const isWaiting = update.status?.startTime === undefined && !isComplete(update);
  if (!isWaiting && !isWithdrawn(update)) return false;
  const isResult = (other: Update): boolean => isComplete(other) && !isWithdrawn(other);
  return updates.some(
    (other) => commitOf(other) === commitOf(update) && isResult(other) && isLater(update, other) && other !== update,
  );
}

/** `others`: the Updates of previews that share the status of the commit. */
export const hasSharedResult = (update: Update, others: readonly Update[]): boolean =>
  !hasResult(update) && others.some((other) => commitOf(other) === commitOf(update) && hasResult(other));
