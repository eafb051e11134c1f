/**
 * The live feed of a run: lines of JSON in the log of the container `pulumi`, among other lines. Whoever may read the
 * pod's log can follow the run. The kubelet rotates logs, so a reader may miss lines: the numbers show the gap.
 */
import { Type, type Static } from "typebox";
import { Check } from "typebox/value";
import { readLogLine, type LogLine } from "./log-line.ts";
import { NumberedEvent } from "./run-event.ts";

/** Changes only if a reader of this version would misunderstand a line. New fields and kinds of events do not change it. */
export const feedVersion = 1;

const FeedLine = Type.Object({
  feed: Type.Literal(feedVersion),
  /** The UID of the Update. */
  run: Type.String({ maxLength: 128 }),
  ...NumberedEvent.properties,
});

/** The line of an event, without its end. */
export function formatFeedLine(run: string, { seq, time, event }: NumberedEvent): string {
  const line: Static<typeof FeedLine> = { feed: feedVersion, run, seq, time, event };
  return JSON.stringify(line);
}

export const parseLogLine = (text: string): LogLine =>
  readLogLine(text, (value): value is Static<typeof FeedLine> => Check(FeedLine, value));
