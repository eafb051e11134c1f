/**
 * Which occurrences of a Notification are done: sent or dropped. Everything before the cursor's time is done, and later ones
 * are named by a mark. The time trails what was sent, because an occurrence may become known after a later one. Pure.
 */
import type { Notification, NotificationCursor } from "@pko/api";
import { timestamp } from "@pko/kube";

import { parseTimestamp } from "../../shared/parse-timestamp.ts";
import type { Occurrence } from "./occurrence.ts";

type SentMinute = NonNullable<NotificationCursor["done"]>[number];

const markLength = 8;
const minuteMs = 60_000;
/** Longer than the write of a status takes, with its retries, and than the clocks of two replicas differ. */
export const lateMs = 5 * minuteMs;
/** 32 KiB in the status. */
export const maxMarks = 4096;

export const cursorAt = (now: number): NotificationCursor => ({ time: timestamp(now) });

/** A later time was recorded while the clock was wrong: until then, everything would count as done. */
export function cursorIn({ status }: Notification, now: number): NotificationCursor | undefined {
  const { cursor } = status ?? {};
  return cursor && timeOf(cursor) > now + lateMs ? { ...cursor, time: timestamp(now - lateMs) } : cursor;
}

/** Whether an occurrence is not done. */
export function isNewTo(cursor: NotificationCursor): (occurrence: Occurrence) => boolean {
  const from = timeOf(cursor);
  const marks = new Set((cursor.done ?? []).flatMap(({ marks: text }) => split(text)));
  return ({ time, id }) => time >= from && !marks.has(markOf(id));
}

/** The cursor after some occurrences are done, while others are left. */
export function advance(
  cursor: NotificationCursor,
  done: readonly Occurrence[],
  left: readonly Occurrence[],
): NotificationCursor {
  const minutes = new Map((cursor.done ?? []).map(({ time, marks }) => [parseTimestamp(time) ?? 0, marks]));
  for (const { time, id } of done) {
    const minute = minuteOf(time);
    minutes.set(minute, (minutes.get(minute) ?? "") + markOf(id));
  }
  const newest = done.reduce((latest, { time }) => Math.max(latest, time), 0);
  const oldestLeft = left.reduce((earliest, { time }) => Math.min(earliest, time), Infinity);
  const wanted = Math.max(timeOf(cursor), Math.min(newest - lateMs, oldestLeft));
  const sorted = [...minutes].toSorted(([a], [b]) => a - b).filter(([minute]) => minute + minuteMs > wanted);
  const { from, kept } = withinLimit(sorted, wanted);
  return { time: timestamp(from), ...(kept.length > 0 && { done: kept }) };
}

/** With too many marks, the oldest minutes are replaced by the cursor's time. */
function withinLimit(minutes: readonly (readonly [number, string])[], from: number) {
  const kept = [...minutes];
  let time = from;
  const count = (): number => kept.reduce((sum, [, marks]) => sum + marks.length / markLength, 0);
  while (kept.length > 1 && count() > maxMarks) {
    const [minute] = kept.shift() ?? [time];
    time = Math.max(time, minute + minuteMs);
  }
  return { from: time, kept: kept.map(([minute, marks]): SentMinute => ({ time: timestamp(minute), marks })) };
}

const timeOf = ({ time }: NotificationCursor): number => parseTimestamp(time) ?? 0;

const minuteOf = (time: number): number => Math.floor(time / minuteMs) * minuteMs;

const markOf = (id: string): string => Buffer.from(id.slice(0, 12), "hex").toString("base64url");

function split(marks: string): string[] {
  const all: string[] = [];
  for (let at = 0; at < marks.length; at += markLength) all.push(marks.slice(at, at + markLength));
  return all;
}
