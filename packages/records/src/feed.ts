/**
 * The live feed of a run: lines of JSON in the log of the container `pulumi`, among other lines. Whoever may read the
 * pod's log can follow the run. The kubelet rotates logs, so a reader may miss lines: the numbers show the gap.
 */
import { Type, type Static } from "typebox";
import { Check } from "typebox/value";
import { NumberedEvent } from "./run-event.ts";

/** Changes only if a reader of this version would misunderstand a line. New fields and kinds of events do not change it. */
export const feedVersion = 1;

const FeedLine = Type.Object({
  feed: Type.Literal(feedVersion),
  /** The UID of the Update. */
  run: Type.String({ maxLength: 128 }),
  ...NumberedEvent.properties,
});

/** A line of the container's log: an event of a run, a message of the agent, or what the CLI printed. */
export type LogLine =
  | { readonly kind: "event"; readonly run: string; readonly event: NumberedEvent }
  | { readonly kind: "message"; readonly text: string }
  | { readonly kind: "text"; readonly text: string };

/** The line of an event, without its end. */
export function formatFeedLine(run: string, { seq, time, event }: NumberedEvent): string {
  const line: Static<typeof FeedLine> = { feed: feedVersion, run, seq, time, event };
  return JSON.stringify(line);
}

/** Only lines of the agent start with a brace: it indents such a line of the CLI. */
export function parseLogLine(text: string): LogLine {
  if (!text.startsWith("{")) return { kind: "text", text };
  const value = parseJson(text);
  if (!Check(FeedLine, value)) return { kind: "message", text };
  const { run, seq, time, event } = value;
  return { kind: "event", run, event: { seq, time, event } };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

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
