/** What an Update's status says, for whoever reads it. */
import type { Update, UpdateConditionType } from "@pko/api";

export function isComplete(update: Update): boolean {
  return holds(update, "Complete");
}

export function holds({ status }: Update, type: UpdateConditionType): boolean {
  return status?.conditions?.some((condition) => condition.type === type && condition.status === "True") ?? false;
}
