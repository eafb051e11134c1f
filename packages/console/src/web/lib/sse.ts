/** Server-Sent Events from the chunks of a response. Pure. */

export interface SseResult {
  /** The data of each complete event. */
  readonly data: readonly string[];
  /** The beginning of an event that is not complete. */
  readonly rest: string;
}

/** Comments (heartbeats) have no data. */
export function parseSse(text: string): SseResult {
  const blocks = text.replaceAll("\r\n", "\n").split("\n\n");
  const rest = blocks.pop() ?? "";
  const data = blocks.flatMap((block) => {
    const lines = block.split("\n").filter((line) => line.startsWith("data:"));
    return lines.length === 0 ? [] : [lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n")];
  });
  return { data, rest };
}
