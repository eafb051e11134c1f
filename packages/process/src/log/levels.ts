/** Levels and formats, under zap's names and numbers. */
export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogFormat = "json" | "console";

const levels: readonly LogLevel[] = ["debug", "info", "warn", "error"];

export const isAtLeast = (level: LogLevel, least: LogLevel): boolean => levels.indexOf(level) >= levels.indexOf(least);

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
