/** A text within a limit, with an ellipsis where it was truncated. Never splits a surrogate pair. */
export function truncate(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit - 1).replace(/[\uD800-\uDBFF]$/u, "")}…`;
}

const jsonBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text)) - 2;
const ellipsisBytes = Buffer.byteLength("…");

/** A text whose JSON, without quotes, has at most `maxBytes`. */
export function truncateJson(text: string, maxBytes: number): string {
  if (jsonBytes(text) <= maxBytes) return text;
  let [kept, bytes] = ["", ellipsisBytes];
  for (const char of text) {
    bytes += jsonBytes(char);
    if (bytes > maxBytes) break;
    kept += char;
  }
  return `${kept}…`;
}
