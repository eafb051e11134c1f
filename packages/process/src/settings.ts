/** The settings of a process: its flags and environment variables. */
import type { Logger } from "./log/index.ts";

/**
 * Settings that are invalid are logged, and the process ends. `log` has the default format, because that is a setting, too. Only the
 * text is logged: whoever corrects the settings needs no stack trace.
 */
export function settingsOrExit<T>(log: Logger, message: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    log.error(message, { error: error instanceof Error ? { name: error.name, message: error.message } : error });
    return process.exit(1);
  }
}
