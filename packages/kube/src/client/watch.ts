/** The wire format of a watch: one JSON object per line. */
import type { WatchEvent } from "./client.ts";
import { ApiError } from "./errors.ts";
import { objectAt, parseJson, textAt, trusted } from "./requests/json.ts";
import type { KubeObject } from "../resource.ts";
import { parseFailure } from "./requests/status.ts";

// Far above the size of an object in etcd; an endless line must not fill the memory.
const maxLineBytes = 64 * 1024 * 1024;
const newline = 10;

/** The lines of a byte stream. Buffers only the current line. */
export async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let open: Uint8Array[] = [];
  let openBytes = 0;
  for await (const chunk of stream) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      const rest = chunk.subarray(start, end);
      yield decoder.decode(open.length === 0 ? rest : Buffer.concat([...open, rest]));
      open = [];
      openBytes = 0;
      start = end + 1;
    }
    if (start === chunk.length) continue;
    open.push(start === 0 ? chunk : chunk.slice(start));
    openBytes += chunk.length - start;
    if (openBytes > maxLineBytes) throw new Error(`a watch event is longer than ${maxLineBytes} bytes`);
  }
  if (openBytes > 0) throw new Error("the watch ended in the middle of an event");
}

/** Throws an ERROR event as an ApiError, for example 410 when the resource version is too old. */
export function parseWatchEvent<T extends KubeObject>(call: string, line: string): WatchEvent<T> | undefined {
  const event = parseJson(line);
  const object = objectAt(event, "object");
  const type = textAt(event, "type") ?? "";
  switch (type) {
    case "ADDED":
    case "MODIFIED":
    case "DELETED":
      return { type, object: trusted<T>(object) };
    case "BOOKMARK":
      return { type, resourceVersion: textAt(objectAt(object, "metadata"), "resourceVersion") ?? "" };
    case "ERROR":
      throw new ApiError(call, parseFailure(object, { status: 500, reason: "Unknown" }));
    default:
      // A later API version may add event types.
      return undefined;
  }
}
