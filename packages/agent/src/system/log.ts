/**
 * The container's log: the agent's messages and the feed of its runs as JSON on standard error, and the CLI's output as
 * plain text on standard output. Known secrets are masked in all of them.
 */
import { formatFeedLine, type NumberedEvent } from "@pko/records";
import type { Clean } from "./clean-text.ts";
import type { Redactor } from "./redact.ts";

type Field = string | number | boolean | undefined;
/** The log itself sets the other three. */
type LogFields = Readonly<Record<string, Field>> & { readonly [Name in "time" | "level" | "message"]?: never };

export interface Log {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** Logs an event of a run. Secrets in events are masked when they are created. */
  event(run: string, event: NumberedEvent): void;
  /** Logs a line that the CLI printed. */
  printed(line: Clean): void;
}

type Sink = (line: string) => void;

export function createLog(redactor: Redactor, write: Sink, print: Sink = write): Log {
  // Clean before JSON encoding, because the redactor does not recognize a secret that is encoded twice.
  const cleaned = ([name, value]: readonly [string, Field]): readonly [string, Field] => [
    name,
    typeof value === "string" ? redactor.clean(value) : value,
  ];
  const at =
    (level: string) =>
    (message: string, fields: LogFields = {}): void => {
      const cleanFields = Object.fromEntries(Object.entries(fields).map(cleaned));
      write(`${JSON.stringify({ time: new Date().toISOString(), level, message, ...cleanFields })}\n`);
    };
  const event = (run: string, numbered: NumberedEvent): void => write(`${formatFeedLine(run, numbered)}\n`);
  // Only the agent's messages start with a brace, so a program cannot print a line that looks like one of them.
  const printed = (line: Clean): void => print(`${line.startsWith("{") ? " " : ""}${line}\n`);
  return { info: at("info"), warn: at("warn"), error: at("error"), event, printed };
}
