/** Which occurrences a Notification reports. Pure. */
import type { NotificationFilter } from "@pko/api";
import { globSelector } from "@pko/git";

import { severityOf, type Occurrence } from "./occurrence.ts";

/** An empty list is the same as none. */
export function occurrenceFilter(filter: NotificationFilter = {}): (each: Occurrence) => boolean {
  const { severities = [], kinds = [], stacks = [] } = filter;
  const isSelected = globSelector(stacks);
  const isIn = <T>(wanted: readonly T[], value: T): boolean => wanted.length === 0 || wanted.includes(value);
  return (each) => isIn(severities, severityOf(each)) && isIn(kinds, each.kind) && isSelected(each.stack);
}
