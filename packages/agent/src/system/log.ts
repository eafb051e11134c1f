/**
 * The container's log: the agent's messages and the feed of its runs as JSON on standard error, and the CLI's output as
 * plain text on standard output. Known secrets are masked in all of them. The messages have the keys of the operator's log.
 */
import { logger, type LogKeys, type Logger } from "@pko/process/log";
import { formatFeedLine, type NumberedEvent } from "@pko/records";
import type { Clean } from "./clean-text.ts";
import type { Redactor } from "./redact.ts";

export interface Log extends Pick<Logger, "info" | "warn" | "error"> {
  /** Logs an event of a run. Secrets in events are masked when they are created. */
  event(run: string, event: NumberedEvent): void;
  /** Logs a line that the CLI printed. */
  printed(line: Clean): void;
  /** A log that adds `keys` to each message. */
  child(keys: LogKeys): Log;
}

type Sink = (line: string) => void;

interface LogOptions {
  /** For the CLI's output; the same if absent. */
  readonly print?: Sink;
  /** Of every message. */
  readonly keys?: LogKeys;
}

export function createLog(redactor: Redactor, write: Sink, { print = write, keys }: LogOptions = {}): Log {
  const redact = (text: string): string => redactor.clean(text);
  const messages = logger({ write, redact }).child({ logger: "agent", ...keys });
  const event = (run: string, numbered: NumberedEvent): void => write(`${formatFeedLine(run, numbered)}\n`);
  // Only the agent's messages start with a brace, so a program cannot print a line that looks like one of them.
  const printed = (line: Clean): void => print(`${line.startsWith("{") ? " " : ""}${line}\n`);
  const withMessages = (own: Logger): Log => ({
    ...own,
    event,
    printed,
    child: (more) => withMessages(own.child(more)),
  });
  return withMessages(messages);
}
