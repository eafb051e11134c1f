/**
 * Structured logs: a constant message and keys, one line each, as JSON or human-readable. Level and key names are those
 * of zap and controller-runtime, so that existing chart values and log pipelines of the Go operator's users keep working.
 * Secrets are left out (`plain.ts`), and lines that repeat are counted instead of written (`repetition.ts`).
 */
import { processClock, type LogClock } from "./clock.ts";
import { isAtLeast, type LogFormat, type LogLevel } from "./levels.ts";
import { plainKeys, plainMessage, redactionFor, type Redaction } from "./plain.ts";
import { renderConsole, renderJson, type Line } from "./render.ts";
import { repetitionLimit, type RepetitionLimit } from "./repetition.ts";
import { stderrWriter } from "./stderr.ts";

export type LogKeys = Readonly<Record<string, unknown>>;

export interface Logger {
  debug(message: string, keys?: LogKeys): void;
  info(message: string, keys?: LogKeys): void;
  warn(message: string, keys?: LogKeys): void;
  /** An exception goes under the key `error`. */
  error(message: string, keys?: LogKeys): void;
  /** A logger that adds `keys` to each line. Nested values of the key `logger` are joined by dots. */
  child(keys: LogKeys): Logger;
}

export interface LoggerOptions {
  /** A function if the level can change. */
  readonly level?: LogLevel | (() => LogLevel);
  readonly format?: LogFormat;
  /** Further key names whose values are not written; case-insensitive, at any depth. */
  readonly redactKeys?: readonly string[];
  /** Masks known secrets in a text. */
  readonly redact?: (text: string) => string;
  readonly write?: (line: string) => void;
  readonly clock?: LogClock;
}

export function logger(options: LoggerOptions = {}): Logger {
  const { level = "info", clock = processClock } = options;
  const render = options.format === "console" ? renderConsole : renderJson;
  const rendered = (line: Omit<Line, "time">): string => render({ ...line, time: new Date(clock.now()).toISOString() });
  const write = options.write ?? stderrWriter((lines) => rendered(lostLines(lines)));
  const sink: Sink = {
    least: typeof level === "function" ? level : () => level,
    redaction: redactionFor(options),
    limit: repetitionLimit({ clock, write: (line) => safely(() => write(rendered(line))) }),
  };
  return bound(sink, {});
}

const lostLines = (lines: number): Omit<Line, "time"> => ({
  level: "warn",
  message: "log lines were lost, because nothing read the log",
  keys: { lines },
});

/** Discards everything. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};

interface Sink {
  readonly least: () => LogLevel;
  readonly redaction: Redaction;
  readonly limit: RepetitionLimit;
}

function bound(sink: Sink, keys: LogKeys): Logger {
  const at =
    (level: LogLevel) =>
    (message: string, more?: LogKeys): void => {
      if (isAtLeast(level, sink.least())) emit(sink, { level, message, keys: { ...keys, ...more } });
    };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    child: (more) => bound(sink, joinKeys(keys, more)),
  };
}

function joinKeys(keys: LogKeys, more: LogKeys): LogKeys {
  const { logger: outer } = keys;
  const { logger: inner } = more;
  const joined = typeof outer === "string" && typeof inner === "string" ? { logger: `${outer}.${inner}` } : {};
  return { ...keys, ...more, ...joined };
}

function emit(
  { redaction, limit }: Sink,
  { level, message, keys }: { level: LogLevel; message: string; keys: LogKeys },
) {
  safely(() => limit.add({ level, message: plainMessage(message, redaction), keys: plainKeys(keys, redaction) }));
}

/** Logging never throws: a broken pipe is ignored. */
function safely(log: () => void): void {
  try {
    log();
  } catch {
    // There is nowhere left to report the error.
  }
}
