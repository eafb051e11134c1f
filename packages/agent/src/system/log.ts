/**
 * The container's log: the agent's own messages as JSON on standard error, what the CLI prints as plain text on standard
 * output, with every known secret masked in both.
 */
import type { Clean } from "./clean-text.ts";
import type { Redactor } from "./redact.ts";

type Field = string | number | boolean | undefined;
type LogFields = Readonly<Record<string, Field>>;

export interface Log {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A line that the CLI has printed. */
  printed(line: Clean): void;
}

type Sink = (line: string) => void;

export function createLog(redactor: Redactor, write: Sink, print: Sink = write): Log {
  // Before they are written as JSON, which would spell a secret that is JSON itself in a way that nobody knows.
  const cleaned = ([name, value]: readonly [string, Field]): readonly [string, Field] => [
    name,
    typeof value === "string" ? redactor.clean(value) : value,
  ];
  const at =
    (level: string) =>
    (message: string, fields: LogFields = {}): void => {
      const told = Object.fromEntries(Object.entries(fields).map(cleaned));
      write(`${JSON.stringify({ time: new Date().toISOString(), level, message, ...told })}\n`);
    };
  // Only the agent's messages begin with a brace: a program cannot print one that passes for them.
  const printed = (line: Clean): void => print(`${line.startsWith("{") ? " " : ""}${line}\n`);
  return { info: at("info"), warn: at("warn"), error: at("error"), printed };
}
