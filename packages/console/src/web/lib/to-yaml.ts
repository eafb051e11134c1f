/** JSON of the API server as YAML, for reading. Pure. */

export function toYaml(value: unknown): string {
  return `${lines(value, 0).join("\n")}\n`;
}

function lines(value: unknown, depth: number): string[] {
  if (Array.isArray(value)) return value.length === 0 ? ["[]"] : value.flatMap((item) => itemLines(item, depth));
  if (isObject(value)) {
    const entries = Object.entries(value).filter(([, each]) => each !== undefined);
    return entries.length === 0 ? ["{}"] : entries.flatMap(([key, each]) => entryLines(key, each, depth));
  }
  return scalar(value, depth);
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isBlock = (value: unknown): boolean =>
  Array.isArray(value) ? value.length > 0 : isObject(value) && Object.keys(value).length > 0;

const indent = (depth: number): string => "  ".repeat(depth);

function entryLines(key: string, value: unknown, depth: number): string[] {
  const name = `${indent(depth)}${quoteIfNeeded(key)}:`;
  // Lists are not indented, as kubectl prints them.
  if (isBlock(value)) return [name, ...lines(value, Array.isArray(value) ? depth : depth + 1)];
  const [first = "", ...rest] = lines(value, depth + 1);
  return [`${name} ${first}`, ...rest];
}

function itemLines(item: unknown, depth: number): string[] {
  const [first = "", ...rest] = lines(item, isBlock(item) ? depth + 1 : depth + 1);
  return [`${indent(depth)}- ${first.trimStart()}`, ...rest];
}

function scalar(value: unknown, depth: number): string[] {
  if (typeof value !== "string") return [JSON.stringify(value) ?? "null"];
  if (!value.includes("\n")) return [quoteIfNeeded(value)];
  if (/[\t\r]|^\s|[ ]\n/.test(value)) return [JSON.stringify(value)];
  const text = value.endsWith("\n") ? value.slice(0, -1) : value;
  const marker = value.endsWith("\n\n") ? "|+" : value.endsWith("\n") ? "|" : "|-";
  return [marker, ...text.split("\n").map((line) => (line === "" ? "" : `${indent(depth)}${line}`))];
}

/** Text that YAML could read as something else. */
function quoteIfNeeded(text: string): string {
  const isPlain = /^[A-Za-z_/.][\w ./@+=()-]*(?::[\w/.@-][\w ./@:+=-]*)*$/.test(text) && !text.endsWith(" ");
  return isPlain && !/^(?:true|false|null|yes|no|on|off|y|n|~|\.inf|\.nan)$/i.test(text) && !/^\.?\d/.test(text)
    ? text
    : JSON.stringify(text);
}
