/** A text within a limit, with a sign where it was cut. Never half a character: it would be told as a wrong one. */
export function cut(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit - 1).replace(/[\uD800-\uDBFF]$/u, "")}…`;
}
