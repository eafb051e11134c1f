/** Reads the body of a request that nobody has verified yet: at most so many bytes, for at most so long. */
import type { Clock } from "@pko/kube";

export type ReadBody =
  { readonly kind: "read"; readonly body: Buffer } | { readonly kind: "tooLarge" | "tooSlow" | "busy" };

interface BodyLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Aborted if another request needs the slot of this one, which is then busy. */
  readonly signal: AbortSignal;
}

/** A connection that breaks counts as too slow. */
export async function readBody(request: Request, limits: BodyLimits): Promise<ReadBody> {
  const { maxBytes, timeoutMs, clock, signal } = limits;
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) return { kind: "tooLarge" };
  if (!request.body) return { kind: "read", body: Buffer.alloc(0) };
  const reader = request.body.getReader();
  const { promise: ended, resolve } = Promise.withResolvers<"tooSlow" | "busy">();
  const cancelTimer = clock.after(timeoutMs, () => resolve("tooSlow"));
  signal.addEventListener("abort", () => resolve("busy"), { once: true });
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for (;;) {
      const next = await Promise.race([ended, reader.read()]);
      if (typeof next === "string") return { kind: next };
      if (next.done) return { kind: "read", body: Buffer.concat(chunks) };
      size += next.value.byteLength;
      if (size > maxBytes) return { kind: "tooLarge" };
      chunks.push(next.value);
    }
  } catch {
    return { kind: "tooSlow" };
  } finally {
    cancelTimer();
    // The rest is not read. An error here only means that the connection has ended.
    void reader.cancel().catch(() => undefined);
  }
}
