/** One page's stream of Server-Sent Events. */
import type { Clock } from "@pko/kube";

import { limits, type Subscription } from "../shared/contract.ts";
import type { Caller } from "./callers.ts";
import { Compressor } from "./compressor.ts";
import { runFeed } from "./feeds.ts";
import { Outbox } from "./outbox.ts";
import { respond } from "./responses.ts";

const outboxChars = 1024 * 1024;
const chunkChars = 64 * 1024;

interface StreamOptions {
  readonly caller: Caller;
  readonly subscriptions: readonly Subscription[];
  readonly clock: Clock;
  /** Aborts when the browser disconnects. */
  readonly signal: AbortSignal;
  readonly onUnauthorized: () => void;
  readonly isCompressed?: boolean;
}

export function openStream(options: StreamOptions): Response {
  const { caller, subscriptions, clock, signal, onUnauthorized, isCompressed = false } = options;
  const own = new AbortController();
  const { streams } = caller.usage;
  const outbox = new Outbox(outboxChars);
  const end = (): void => own.abort(new Error("the page is disconnected"));
  streams.add(own);
  signal.addEventListener("abort", end, { once: true });
  const ended = (): void => {
    streams.delete(own);
    outbox.wake();
  };
  own.signal.addEventListener("abort", ended, { once: true });
  const context = {
    credentials: caller.credentials,
    clock,
    signal: own.signal,
    emit: async (message: Parameters<Outbox["push"]>[0]) => {
      outbox.push(message);
      while (outbox.isFull && !own.signal.aborted) await outbox.changed();
    },
    // The page connects again, with the newer token that a proxy may have, or learns that it is signed out.
    onUnauthorized: () => {
      onUnauthorized();
      end();
    },
  };
  for (const subscription of subscriptions) void runFeed(context, subscription);
  return respond(eventStream(outbox, { clock, signal: own.signal, end, isCompressed }), {
    contentType: "text/event-stream; charset=utf-8",
    // Proxies such as nginx would collect the events.
    headers: { "x-accel-buffering": "no", ...(isCompressed && { "content-encoding": "gzip" }) },
  });
}

interface Life {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly end: () => void;
  readonly isCompressed: boolean;
}

/** Events are taken from the outbox when the browser's connection has room for them. */
function eventStream(outbox: Outbox, { clock, signal, end, isCompressed }: Life): ReadableStream<Uint8Array> {
  const encoder = isCompressed ? new Compressor() : plainEncoder();
  let isStarted = false;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const text = isStarted ? await nextEvents(outbox, clock, signal) : "retry: 2000\n\n";
        isStarted = true;
        if (text !== undefined) return controller.enqueue(await encoder.part(text));
        const rest = await encoder.end();
        if (rest.length > 0) controller.enqueue(rest);
        controller.close();
      },
      cancel() {
        encoder.stop();
        end();
      },
    },
    { highWaterMark: 0 },
  );
}

function plainEncoder(): Pick<Compressor, "part" | "end" | "stop"> {
  const encoder = new TextEncoder();
  return {
    part: async (text) => encoder.encode(text),
    end: async () => new Uint8Array(),
    stop: () => undefined,
  };
}

/** A comment if there are none for a while; undefined if the stream has ended. */
async function nextEvents(outbox: Outbox, clock: Clock, signal: AbortSignal): Promise<string | undefined> {
  let isQuiet = false;
  const cancel = clock.after(limits.heartbeatSeconds * 1000, () => {
    isQuiet = true;
    outbox.wake();
  });
  try {
    while (!signal.aborted) {
      const text = outbox.take(chunkChars);
      if (text !== undefined) return text;
      if (isQuiet) return ": heartbeat\n\n";
      await outbox.changed();
    }
    return undefined;
  } finally {
    cancel();
  }
}
