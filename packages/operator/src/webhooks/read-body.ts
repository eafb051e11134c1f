/** Reads the body of a request that nobody has verified yet: at most so many bytes, for at most so long. */
import type { Clock } from "@pko/kube";

export type ReadBody = { readonly kind: "read"; readonly body: Buffer } | { readonly kind: "tooLarge" | "tooSlow" };

interface BodyLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** A connection that breaks counts as too slow. */
export async function readBody(request: Request, limits: BodyLimits): Promise<ReadBody> {
  const { maxBytes, timeoutMs, clock } = limits;
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) return { kind: "tooLarge" };
  if (!request.body) return { kind: "read", body: Buffer.alloc(0) };
  const reader = request.body.getReader();
  const { promise: late, resolve } = Promise.withResolvers<"late">();
  const cancelTimer = clock.after(timeoutMs, () => resolve("late"));
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for (;;) {
      const next = await Promise.race([late, reader.read()]);
      if (next === "late") return { kind: "tooSlow" };
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
