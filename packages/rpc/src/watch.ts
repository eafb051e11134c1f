/** Follows a run across broken connections: each event once, in order, until the result. */
import type { StreamItem } from "./answers.ts";
import type { CallError } from "./errors.ts";
import type { Progress, RunEvent } from "@pko/records";
import type { RunResult, WatchMessage, WatchRequest } from "./run.ts";
import { pause } from "./transport/pause.ts";

export type WatchUpdate =
  | { readonly type: "event"; readonly seq: number; readonly time: string; readonly event: RunEvent }
  | { readonly type: "progress"; readonly seq: number; readonly progress: Progress }
  /** The connection broke; the next attempt continues after the last event. */
  | { readonly type: "reconnecting"; readonly attempt: number; readonly error: CallError }
  | { readonly type: "result"; readonly seq: number; readonly result: RunResult }
  /** A final error: the agent does not know the run, or cannot be trusted or understood. */
  | { readonly type: "lost"; readonly error: CallError };

export interface WatchOptions {
  readonly signal?: AbortSignal;
  /** The delay before the first reconnect; it doubles up to `maxBackoffMs`. */
  readonly backoffMs?: number;
  readonly maxBackoffMs?: number;
  /** After this many failures in a row the watch ends with `lost`. Unlimited by default. */
  readonly maxAttempts?: number;
}

interface OpenOptions {
  readonly request: WatchRequest;
  readonly signal?: AbortSignal;
}

type Open = (options: OpenOptions) => AsyncIterable<StreamItem<WatchMessage>>;

export async function* followRun(
  open: Open,
  request: WatchRequest,
  options: WatchOptions = {},
): AsyncGenerator<WatchUpdate> {
  const position = { nextSeq: request.fromSeq, attempt: 0 };
  while (!options.signal?.aborted) {
    const from = { runId: request.runId, fromSeq: position.nextSeq };
    const items = open(options.signal ? { request: from, signal: options.signal } : { request: from });
    const end = yield* forwardNew(items, position);
    if (end === "result" || options.signal?.aborted) return;
    position.attempt += 1;
    if (isFinal[end.code] || position.attempt > (options.maxAttempts ?? Number.POSITIVE_INFINITY)) {
      yield { type: "lost", error: end };
      return;
    }
    yield { type: "reconnecting", attempt: position.attempt, error: end };
    await pause(backoff(options, position.attempt), options.signal);
  }
}

interface Position {
  nextSeq: number;
  attempt: number;
}

/** Yields the new messages of one connection and returns why the connection ended. */
async function* forwardNew(
  items: AsyncIterable<StreamItem<WatchMessage>>,
  position: Position,
): AsyncGenerator<WatchUpdate, CallError | "result"> {
  let error: CallError = { code: "unreachable", message: "the stream ended before the result" };
  for await (const item of items) {
    if (item.type === "ended") error = item.error ?? error;
    // Do not request an event of an unknown kind again after a reconnect.
    if (item.type === "skipped" && item.seq !== undefined) position.nextSeq = Math.max(position.nextSeq, item.seq + 1);
    if (item.type !== "message") continue;
    const { message } = item;
    position.attempt = 0;
    if (message.type === "event") {
      if (message.seq < position.nextSeq) continue;
      position.nextSeq = message.seq + 1;
    }
    yield message;
    if (message.type === "result") return "result";
  }
  return error;
}

/** Whether a retry cannot help. */
const isFinal: Readonly<Record<CallError["code"], boolean>> = {
  notFound: true,
  invalidRequest: true,
  unknownMethod: true,
  runMismatch: true,
  untrusted: true,
  protocol: true,
  tooLarge: true,
  failed: true,
  unsupported: true,
  unreachable: false,
  deadline: false,
  aborted: false,
  busy: false,
  unprepared: false,
  stopping: false,
  internal: false,
};

function backoff(options: WatchOptions, attempt: number): number {
  const first = options.backoffMs ?? 250;
  return Math.min(first * 2 ** (attempt - 1), options.maxBackoffMs ?? 10_000);
}
