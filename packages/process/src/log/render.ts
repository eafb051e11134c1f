/** A line as JSON or human-readable. */
import type { LogLevel } from "./levels.ts";
import type { Plain, PlainKeys } from "./plain.ts";

export interface Line {
  readonly level: LogLevel;
  readonly time: string;
  readonly message: string;
  readonly keys: PlainKeys;
}

export function renderJson(line: Line): string {
  const { level, time, message, keys } = line;
  const own = { level, ts: time, msg: message };
  // Twice: these keys come first, and keys with the same name cannot replace them.
  return `${JSON.stringify({ ...own, ...keys, ...own })}\n`;
}

export function renderConsole(line: Line): string {
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
