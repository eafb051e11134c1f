/** Which occurrences a Notification reports. Pure. */
import type { NotificationFilter } from "@pko/api";
import { globSelector } from "@pko/git";

import { severityOf, type Occurrence } from "./occurrence.ts";

/** An empty list is the same as none. */
export function occurrenceFilter(filter: NotificationFilter = {}): (each: Occurrence) => boolean {
  const { severities = [], kinds = [], stacks = [] } = filter;
  const isSelected = remembered(globSelector(stacks));
  const isIn = <T>(wanted: readonly T[], value: T): boolean => wanted.length === 0 || wanted.includes(value);
  return (each) => isIn(severities, severityOf(each)) && isIn(kinds, each.kind) && isSelected(each.stack);
}

/** A selector matches a limited number of names, and there is no limit to the events of a Stack. */
function remembered(isSelected: (stack: string) => boolean): (stack: string) => boolean {
  const known = new Map<string, boolean>();
  return (stack) => {
    const result = known.get(stack) ?? isSelected(stack);
    known.set(stack, result);
    return result;
  };
}
