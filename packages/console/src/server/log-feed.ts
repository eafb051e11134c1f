/** Follows the log of a container. After an interruption it continues after the last line that was sent. */
import { podLogs } from "@pko/kube";

import type { LogSubscription } from "../shared/contract.ts";
import type { FeedContext, Outcome } from "./feeds.ts";

export interface LogProgress {
  /** The time of the last line. */
  since: string | undefined;
}

/** An endless line must not fill the memory; a longer one is sent in pieces. */
const maxLineChars = 256 * 1024;

/** Ends with "ended" if the container has ended: then the log ends again, without a new line. */
export async function readLog(
  context: FeedContext,
  subscription: LogSubscription,
  progress: LogProgress,
): Promise<Outcome> {
  const { credentials, signal, emit } = context;
  const { id, namespace, pod, container, sinceSeconds } = subscription;
  const { since } = progress;
  const isResumed = since !== undefined;
  const start = isResumed ? { sinceTime: since } : sinceSeconds === undefined ? {} : { sinceSeconds };
  const options = { container, follow: true, timestamps: true, signal, ...start };
  let hasLines = false;
  for await (const line of lines(podLogs(credentials, { namespace, name: pod }, options))) {
    const { time, text } = stamped(line);
    // `sinceTime` includes its whole second.
    if (since !== undefined && time !== undefined && !isAfter(time, since)) continue;
    progress.since = time ?? progress.since;
    hasLines = true;
    await emit({ id, type: "line", text });
  }
  // The API server may have been stopped in an orderly way: only a log that ends again has ended.
  if (hasLines || !isResumed) {
    progress.since ??= new Date(0).toISOString();
    return "progress";
  }
  await emit({ id, type: "end" });
  return "ended";
}

async function* lines(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let open = "";
  for await (const chunk of chunks) {
    const parts = `${open}${chunk}`.split("\n");
    open = parts.pop() ?? "";
    yield* parts;
    if (open.length > maxLineChars) {
      yield open;
      open = "";
    }
  }
  if (open !== "") yield open;
}

function stamped(line: string): { readonly time?: string; readonly text: string } {
  const [, time, text = ""] = /^(\d{4}-\d\d-\d\dT[\d:.]+Z) ([^]*)$/.exec(line) ?? [];
  return time === undefined ? { text: line } : { time, text };
}

/** Go omits trailing zeros of nanoseconds, so that the texts cannot be compared as they are. */
export function isAfter(a: string, b: string): boolean {
  const [comparableA, comparableB] = [a, b].map((time) => {
    const [seconds = "", fraction = ""] = time.replace("Z", "").split(".");
    return `${seconds}.${fraction.padEnd(9, "0")}`;
  });
  return (comparableA ?? "") > (comparableB ?? "");
}
