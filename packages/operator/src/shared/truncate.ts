/** A text within a limit, with an ellipsis where it was truncated. Never splits a surrogate pair. */
export function truncate(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit - 1).replace(/[\uD800-\uDBFF]$/u, "")}…`;
}
