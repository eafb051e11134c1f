/**
 * A batch of spans as OTLP/HTTP with JSON: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding. Times are texts
 * with nanoseconds, and IDs are hexadecimal.
 */
import type { Attributes, Span } from "./span.ts";

/** What the spans come from. */
export interface Origin {
  readonly resource: Attributes;
  /** The program that records them, and its version. */
  readonly scope: { readonly name: string; readonly version: string };
}

const kinds = { internal: 1, client: 3 } as const;
const failed = 2;

export function otlpRequest(spans: readonly Span[], { resource, scope }: Origin): object {
  return {
    resourceSpans: [
      { resource: { attributes: keyValues(resource) }, scopeSpans: [{ scope, spans: spans.map(otlpSpan) }] },
    ],
  };
}

function otlpSpan(span: Span): object {
  const { kind = "internal", startMs, endMs, attributes, events, error, isParent: _, ...ids } = span;
  return {
    ...ids,
    kind: kinds[kind],
    startTimeUnixNano: nanoseconds(startMs),
    endTimeUnixNano: nanoseconds(Math.max(startMs, endMs)),
    attributes: keyValues(attributes ?? {}),
    ...(events && { events: events.map(({ name, atMs }) => ({ name, timeUnixNano: nanoseconds(atMs) })) }),
    ...(error !== undefined && { status: { code: failed, message: error } }),
  };
}

/** Whole microseconds are exact in a double; nanoseconds are not. */
const nanoseconds = (ms: number): string => `${Math.round(ms * 1000)}000`;

function keyValues(attributes: Attributes): object[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: anyValue(value) }],
  );
}

function anyValue(value: string | number | boolean): object {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  // 64-bit integers are texts in JSON.
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
