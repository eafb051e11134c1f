/** A stream of messages as lines of frames: pulled by its reader, so a slow one holds back its source, with heartbeats. */
import type { AgentError } from "./errors.ts";
import { maxLineBytes } from "./limits.ts";

interface FrameOptions {
  readonly messages: AsyncIterable<unknown>;
  /** Aborted when the reader is gone. */
  readonly unread: AbortController;
  readonly heartbeatMs: number;
  /** What the reader is told of an error in the source. */
  readonly onError: (error: unknown) => AgentError;
}

export function frameStream(options: FrameOptions): ReadableStream<Uint8Array> {
  const source = options.messages[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  const { signal } = options.unread;
  let pending: Promise<IteratorResult<unknown>> | undefined;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const send = (frame: object): void => controller.enqueue(encoder.encode(`${JSON.stringify(frame)}\n`));
        try {
          pending ??= source.next();
          const next = await orSilence(pending, options.heartbeatMs);
          // Nobody listens any more, and the stream is closed.
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
        options.unread.abort();
        // The source may be waiting for its next message; it ends once it has it or sees the signal.
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
