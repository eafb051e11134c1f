/** Which occurrences a Notification reports. Pure. */
import type { NotificationFilter } from "@pko/api";
import { limitedGlobs, type WorkLeft } from "@pko/git";

import { severityOf, type Occurrence } from "./occurrence.ts";

export type OccurrenceFilter = (each: Occurrence, work: WorkLeft) => boolean;

/** An empty list is the same as none. */
export function occurrenceFilter(filter: NotificationFilter = {}): OccurrenceFilter {
  const { severities = [], kinds = [], stacks = [] } = filter;
  const isSelected = limitedGlobs(stacks);
  const isIn = <T>(wanted: readonly T[], value: T): boolean => wanted.length === 0 || wanted.includes(value);
  return (each, work) => isIn(severities, severityOf(each)) && isIn(kinds, each.kind) && isSelected(each.stack, work);
}
