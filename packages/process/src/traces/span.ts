/** A span, and the IDs that connect spans to a trace. IDs are derived from names, so another process continues the same trace. */
import { createHash } from "node:crypto";

export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface SpanContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
}

export interface Span extends SpanContext {
  /** The root of a trace has none. */
  readonly parentSpanId?: string;
  /** Other spans may name it as their parent, so it is dropped last: without it, they would be orphans. */
  readonly isParent?: true;
  readonly name: string;
  /** Whether it is a request to another process. */
  readonly kind?: "internal" | "client";
  /** Milliseconds since the epoch. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes?: Attributes;
  readonly events?: readonly SpanEvent[];
  /** Why it failed; absent if it did not. */
  readonly error?: string;
}

export interface SpanEvent {
  readonly name: string;
  readonly atMs: number;
}

/** The same for the same source, such as the UID of an object. */
export const traceIdOf = (source: string): string => hexDigest(`trace ${source}`, 32);

export const spanIdOf = (source: string, name: string): string => hexDigest(`span ${source} ${name}`, 16);

/** In the format of W3C Trace Context. The flag is set if the spans are recorded. */
export const traceparentOf = ({ traceId, spanId }: SpanContext, isSampled: boolean): string =>
  `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;

/** The ID of the trace that a `traceparent` continues; undefined if it is none. */
export const traceIdIn = (traceparent: string | undefined): string | undefined =>
  /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/.exec(traceparent ?? "")?.[1];

function hexDigest(text: string, digits: number): string {
  return createHash("sha256").update(text).digest("hex").slice(0, digits);
}
