/** Log lines: a constant message and keys, as JSON on standard error, with every known secret masked. */
import type { Redactor } from "./redact.ts";

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Log {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export function createLog(redactor: Redactor, write: (line: string) => void): Log {
  const at =
    (level: string) =>
    (message: string, fields: LogFields = {}): void => {
      const line = JSON.stringify({ time: new Date().toISOString(), level, message, ...fields });
      write(`${redactor.clean(line)}\n`);
    };
  return { info: at("info"), warn: at("warn"), error: at("error") };
}
