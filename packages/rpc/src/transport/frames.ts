/** Turns messages into lines of frames, with heartbeats. The reader pulls, so a slow reader applies backpressure. */
import type { AgentError } from "../errors.ts";
import { maxLineBytes } from "../limits.ts";

interface FrameOptions {
  readonly messages: AsyncIterable<unknown>;
  /** Aborted when the reader disconnects. */
  readonly disconnected: AbortController;
  readonly heartbeatMs: number;
  /** The error to send to the reader when the source throws. */
  readonly onError: (error: unknown) => AgentError;
}

export function frameStream(options: FrameOptions): ReadableStream<Uint8Array> {
  const source = options.messages[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  const { signal } = options.disconnected;
  let pending: Promise<IteratorResult<unknown>> | undefined;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const send = (frame: object): void => controller.enqueue(encoder.encode(`${JSON.stringify(frame)}\n`));
        try {
          pending ??= source.next();
          const next = await orSilence(pending, options.heartbeatMs);
          // The reader disconnected and the stream is closed.
          if (signal.aborted) return;
          if (next === "silence") return send({ frame: "heartbeat" });
          pending = undefined;
          if (!next.done) return controller.enqueue(encodeMessage(encoder, next.value));
          send({ frame: "end" });
        } catch (error) {
          if (signal.aborted) return;
          send({ frame: "error", error: options.onError(error) });
        }
        controller.close();
      },
      cancel() {
        options.disconnected.abort();
        // The source may be waiting for its next message; it ends after that message or at the signal.
        void source.return?.().catch(() => undefined);
      },
    },
    // One frame ahead of the reader, no more.
    { highWaterMark: 1 },
  );
}

function encodeMessage(encoder: TextEncoder, message: unknown): Uint8Array {
  const line = encoder.encode(`${JSON.stringify({ frame: "message", message })}\n`);
  if (line.length > maxLineBytes) throw new Error(`a message is larger than ${maxLineBytes} bytes`);
  return line;
}

async function orSilence<T>(promise: Promise<T>, ms: number): Promise<T | "silence"> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<"silence">((resolve) => {
    timer = setTimeout(() => resolve("silence"), ms);
  });
  try {
    return await Promise.race([promise, silence]);
  } finally {
    clearTimeout(timer);
  }
}
