/** What an Update's status says, for whoever reads it. */
import type { Condition, Update, UpdateConditionType } from "@pko/api";

export function isComplete(update: Update): boolean {
  return holds(update, "Complete");
}

export function holds(update: Update, type: UpdateConditionType): boolean {
  return conditionOf(update, type, "True") !== undefined;
}

export function conditionOf(
  { status: reported }: Update,
  type: UpdateConditionType,
  status: Condition["status"],
): Condition | undefined {
  return reported?.conditions?.find((condition) => condition.type === type && condition.status === status);
}

/** The Go operator tells no time of an end that it did not see. */
export function endTimeOf(update: Update): string | undefined {
  return update.status?.endTime ?? conditionOf(update, "Complete", "True")?.lastTransitionTime;
}
