/**
 * The log level, which an annotation of the operator's Lease can change without a restart: the elector of every replica
 * receives it. Without leader election there is no Lease, and the configured level stays.
 */
import { logLevelAnnotation } from "@pko/api";
import { isAtLeast, parseLogLevel, type Logger, type LogLevel } from "@pko/kube";

export interface LogLevelSwitch {
  readonly current: LogLevel;
  /** Sets the level from the annotations of the Lease. */
  read(annotations: Readonly<Record<string, string>>, log: Logger): void;
}

export function logLevelSwitch(configured: LogLevel): LogLevelSwitch {
  let current = configured;
  let seen: string | undefined;
  return {
    get current() {
      return current;
    },
    read({ [logLevelAnnotation]: requested }, log) {
      if (requested === seen) return;
      seen = requested;
      const level = requested === undefined ? configured : parseLogLevel(requested);
      if (level === undefined) {
        const annotation = logLevelAnnotation;
        log.warn("the requested log level is unknown; use debug, info, warn or error", { annotation, requested });
      } else if (level !== current) {
        const from = current;
        // The line is written at the level that shows more, so that one of a log of errors is not lost.
        if (isAtLeast(from, level)) current = level;
        log.warn("the log level was changed", { from, to: level, annotation: logLevelAnnotation });
        current = level;
      }
    },
  };
}
