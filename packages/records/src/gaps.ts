/** The order of events, and what is missing between them. Pure. */
import type { NumberedEvent } from "./run-event.ts";

/** The numbers of the events that are missing between two that were read. */
export interface Gap {
  readonly from: number;
  readonly to: number;
}

/** `events` in order, without duplicates. */
export function findGaps(events: readonly Pick<NumberedEvent, "seq">[]): Gap[] {
  return events.flatMap(({ seq }, index) => {
    const previous = events[index - 1]?.seq ?? 0;
    return seq > previous + 1 ? [{ from: previous + 1, to: seq - 1 }] : [];
  });
}

/** Events of the feed and of the record, in order and without duplicates. */
export function mergeEvents(...sources: readonly (readonly NumberedEvent[])[]): NumberedEvent[] {
  const bySeq = new Map(sources.flat().map((event) => [event.seq, event]));
  return [...bySeq.values()].toSorted((a, b) => a.seq - b.seq);
}
