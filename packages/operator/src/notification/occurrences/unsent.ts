/** Occurrences of a Stack that is deleted: after a restart, only the status of the Notification shows them. Pure. */
import type { UnsentNotification } from "@pko/api";
import { timestamp } from "@pko/kube";

import { parseTimestamp } from "../../shared/parse-timestamp.ts";
import type { Occurrence } from "./occurrence.ts";

/** Of the status. */
const maxUnsent = 100;

export const toRecord = (left: readonly Occurrence[]): UnsentNotification[] =>
  left
    .filter(({ kind }) => kind === "Destroyed")
    .slice(0, maxUnsent)
    .map(recorded);

const recorded = ({ time, ...rest }: Occurrence): UnsentNotification => ({ ...rest, time: timestamp(time) });

export function restored({ time, ...rest }: UnsentNotification): Occurrence[] {
  const at = parseTimestamp(time);
  return at === undefined ? [] : [{ ...rest, time: at }];
}
