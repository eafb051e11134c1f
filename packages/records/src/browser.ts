/**
 * Reading without the schema library, which is larger than the console. Only the agent and the operator write feeds and
 * records, and they check what they write: here it is enough that damaged data does not break a page.
 */
import { decompress } from "./decompress.ts";
import { readLogLine, type LogLine } from "./log-line.ts";
import type { RecordContent } from "./record.ts";
import { withRepetitions } from "./repetitions.ts";
import type { NumberedEvent } from "./run-event.ts";

export type * from "./index.ts";
export { runFinished, runStarted } from "./agent-message.ts";
export * from "./gaps.ts";
export * from "./urn.ts";

const supportedVersion = 1;

export const parseLogLine = (text: string): LogLine => readLogLine(text, isFeedLine);

function isFeedLine(value: unknown): value is NumberedEvent & { readonly run: string } {
  const { feed, run } = fields(value);
  return feed === supportedVersion && typeof run === "string" && isNumberedEvent(value);
}

/** Undefined if it is damaged or of a later version. */
export async function decodeContent(encoded: string): Promise<RecordContent | undefined> {
  const value = await decompress(encoded);
  const { version, events, resources, omitted } = fields(value);
  const isContent =
    version === supportedVersion &&
    Array.isArray(events) &&
    events.every(isNumberedEvent) &&
    Array.isArray(resources) &&
    resources.every((resource) => typeof fields(resource)["urn"] === "string") &&
    ["events", "resources", "values"].every((name) => typeof fields(omitted)[name] === "number");
  return isContent ? withRepetitions(value as RecordContent) : undefined;
}

function isNumberedEvent(value: unknown): value is NumberedEvent {
  const { seq, time, event } = fields(value);
  return Number.isSafeInteger(seq) && typeof time === "string" && isEvent(fields(event));
}

/** The fields that the pages use without a check. An event of a later kind is kept; the pages ignore it. */
function isEvent(event: Readonly<Record<string, unknown>>): boolean {
  switch (event["kind"]) {
    case "resource":
      return ["phase", "op", "urn", "resourceType"].every((name) => typeof event[name] === "string");
    case "diagnostic":
    case "policy":
    case "notice":
      return typeof event["message"] === "string";
    default:
      return typeof event["kind"] === "string";
  }
}

const fields = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
