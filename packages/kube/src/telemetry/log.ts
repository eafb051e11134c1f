/**
 * Structured logs: a constant message and keys, one line each, as JSON or human-readable. Level and key names are those
 * of zap, so that existing chart values and log pipelines of the Go operator's users keep working.
 *
 * Secrets: the values of keys that look like secrets are never written, every text passes the `redact` hook, and an error
 * shows only its message, stack and a few harmless fields (others may contain a request with its headers).
 */
import { writeSync } from "node:fs";

import { systemClock, type Clock } from "../clock.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogFormat = "json" | "console";
type LogKeys = Readonly<Record<string, unknown>>;

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
  readonly level?: LogLevel;
  readonly format?: LogFormat;
  /** Further key names whose values are not written; case-insensitive, at any depth. */
  readonly redactKeys?: readonly string[];
  /** Masks known secrets in a text. */
  readonly redact?: (text: string) => string;
  readonly write?: (line: string) => void;
  readonly clock?: Clock;
}

const levels: readonly LogLevel[] = ["debug", "info", "warn", "error"];

const secretKeys = ["authorization", "cookie", "credential", "password", "passphrase", "privatekey", "secret", "token"];
/** References to secrets are not secret and are useful: `secretName`, `tokenSecretRef`. */
const referenceKey = /(name|names|namespace|ref|refs|type|count|expiresat|expirationseconds)$/;

const maxTextLength = 8192;
const maxDepth = 6;
const maxItems = 100;

/** Parses zap's level names and numbers; undefined if the text is not a level. */
export function parseLogLevel(text: string): LogLevel | undefined {
  const name = text.trim().toLowerCase();
  if (/^\d+$/.test(name)) return Number(name) > 0 ? "debug" : "info";
  if (name === "warning") return "warn";
  if (["dpanic", "panic", "fatal"].includes(name)) return "error";
  return levels.find((level) => level === name);
}

export function parseLogFormat(text: string): LogFormat | undefined {
  const name = text.trim().toLowerCase();
  return name === "json" || name === "console" ? name : undefined;
}

export function logger(options: LoggerOptions = {}): Logger {
  const sink: Sink = {
    least: levels.indexOf(options.level ?? "info"),
    render: options.format === "console" ? renderConsole : renderJson,
    // Synchronous, so that the last line before the process ends is not lost.
    write: options.write ?? ((line) => void writeSync(process.stderr.fd, line)),
    clock: options.clock ?? systemClock,
    redaction: {
      keys: [...secretKeys, ...(options.redactKeys ?? []).map(plainKey)],
      text: options.redact ?? ((text) => text),
    },
  };
  return bound(sink, {});
}

/** Discards everything. */
export const silentLogger: Logger = logger({ write: () => undefined });

interface Redaction {
  readonly keys: readonly string[];
  readonly text: (text: string) => string;
}

type Plain = string | number | boolean | null | undefined | Plain[] | { [key: string]: Plain };
type PlainKeys = { [key: string]: Plain };

interface Line {
  readonly level: LogLevel;
  readonly time: string;
  readonly message: string;
  readonly keys: PlainKeys;
}

interface Sink {
  readonly least: number;
  readonly render: (line: Line) => string;
  readonly write: (line: string) => void;
  readonly clock: Clock;
  readonly redaction: Redaction;
}

function bound(sink: Sink, keys: LogKeys): Logger {
  const at =
    (level: LogLevel) =>
    (message: string, more?: LogKeys): void => {
      if (levels.indexOf(level) >= sink.least) emit(sink, { level, message, keys: { ...keys, ...more } });
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

/** Logging never throws: a value that cannot be read is replaced, a broken pipe is ignored. */
function emit(sink: Sink, line: { level: LogLevel; message: string; keys: LogKeys }): void {
  try {
    const keys: PlainKeys = {};
    for (const [key, value] of Object.entries(line.keys)) {
      if (value !== undefined)
        keys[key] = safely(() => plainValue(value, { key, depth: 0, redaction: sink.redaction }));
    }
    const time = new Date(sink.clock.now()).toISOString();
    sink.write(sink.render({ ...line, message: truncated(sink.redaction.text(line.message)), time, keys }));
  } catch {
    // There is nowhere left to report the error.
  }
}

function safely(read: () => Plain): Plain {
  try {
    return read();
  } catch {
    return "[unreadable]";
  }
}

interface Place {
  readonly key: string;
  readonly depth: number;
  readonly redaction: Redaction;
}

/** The value as plain JSON data: limited in depth and length, without secrets. */
function plainValue(value: unknown, place: Place): Plain {
  if (isSecretKey(place.key, place.redaction.keys)) return "[redacted]";
  switch (typeof value) {
    case "string":
      return truncated(place.redaction.text(value));
    case "number":
    case "boolean":
      return value;
    case "bigint":
      return value.toString();
    case "object":
      return value === null ? null : plainObject(value, place);
    case "undefined":
    case "function":
    case "symbol":
    default:
      return undefined;
  }
}

function plainObject(value: object, place: Place): Plain {
  if (place.depth >= maxDepth) return "[too deep]";
  if (value instanceof Error) return plainError(value, place);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
  if (value instanceof URL) return plainValue(withoutCredentials(value), place);
  const inner = { ...place, depth: place.depth + 1 };
  if (Array.isArray(value)) return value.slice(0, maxItems).map((item: unknown) => plainValue(item, inner));
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`;
  if (value instanceof Set) return plainObject([...value], place);
  if (value instanceof Map) return plainObject(mapFields(value), place);
  const entries = Object.entries(value).slice(0, maxItems);
  return Object.fromEntries(entries.map(([key, item]) => [key, plainValue(item, { ...inner, key })]));
}

function mapFields(map: ReadonlyMap<unknown, unknown>): object {
  return Object.fromEntries([...map].map(([key, value]) => [String(key), value]));
}

/** Fields of errors, ours and Node's, that never contain a secret. */
const harmlessErrorFields = new Set(["code", "errno", "syscall", "status", "reason"]);

function plainError(error: Error, place: Place): Plain {
  const inner = { ...place, depth: place.depth + 1 };
  const plain: PlainKeys = { name: error.name, message: plainValue(error.message, place) };
  for (const [key, value] of Object.entries(error)) {
    if (harmlessErrorFields.has(key)) plain[key] = plainValue(value, { ...inner, key });
  }
  if (error.cause !== undefined) plain["cause"] = plainValue(error.cause, inner);
  if (error instanceof AggregateError) plain["errors"] = plainValue(error.errors, inner);
  if (error.stack && place.depth === 0) plain["stack"] = plainValue(error.stack, place);
  return plain;
}

function withoutCredentials(url: URL): string {
  const copy = new URL(url);
  copy.username = "";
  copy.password = "";
  return copy.href;
}

function isSecretKey(key: string, secrets: readonly string[]): boolean {
  const plain = plainKey(key);
  return !referenceKey.test(plain) && secrets.some((secret) => plain.includes(secret));
}

function plainKey(key: string): string {
  return key.toLowerCase().replaceAll(/[-_.]/g, "");
}

function truncated(text: string): string {
  return text.length <= maxTextLength ? text : `${text.slice(0, maxTextLength)}… (${text.length} characters)`;
}

function renderJson(line: Line): string {
  const { level, time, message, keys } = line;
  const own = { level, ts: time, msg: message };
  // Twice: these keys come first, and keys with the same name cannot replace them.
  return `${JSON.stringify({ ...own, ...keys, ...own })}\n`;
}

function renderConsole(line: Line): string {
  const { logger: name, error, ...rest } = line.keys;
  const parts = [line.time, line.level.toUpperCase().padEnd(5), line.message];
  if (typeof name === "string") parts.splice(2, 0, name);
  for (const [key, value] of Object.entries(rest)) parts.push(`${key}=${consoleValue(value)}`);
  return `${parts.join(" ")}${error === undefined ? "" : consoleError(error)}\n`;
}

function consoleValue(value: Plain): string {
  return typeof value === "string" && /^[\w./:@-]+$/.test(value) ? value : JSON.stringify(value);
}

/** The chain of causes, one per line, and the outermost stack. */
function consoleError(error: Plain): string {
  if (typeof error !== "object" || error === null || Array.isArray(error)) return ` error=${consoleValue(error)}`;
  const { name, message, cause, stack } = error;
  const own = typeof name === "string" && typeof message === "string" ? `${name}: ${message}` : JSON.stringify(error);
  const frames = typeof stack === "string" ? stack.split("\n").filter((frame) => /^\s*at /.test(frame)) : [];
  const trace = frames.map((frame) => `\n    ${frame.trim()}`).join("");
  return `\n  ${own}${trace}${cause === undefined ? "" : `\n  caused by:${consoleError(cause)}`}`;
}
