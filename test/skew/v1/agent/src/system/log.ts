/** Log lines: a constant message and keys, as JSON on standard error, with every known secret masked. */
import type { Redactor } from "./redact.ts";

type Field = string | number | boolean | undefined;
type LogFields = Readonly<Record<string, Field>>;

export interface Log {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export function createLog(redactor: Redactor, write: (line: string) => void): Log {
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
  return { info: at("info"), warn: at("warn"), error: at("error") };
}
