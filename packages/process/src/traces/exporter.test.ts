import { afterEach, expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";

import { spanExporter, type DropReason, type ExporterOptions, type SpanExporter } from "./exporter.ts";
import { readTraceSettings } from "./settings.ts";
import type { Span } from "./span.ts";

const origin = { resource: { "service.name": "test" }, scope: { name: "scope", version: "1" } };
const span = (name: string, more: Partial<Span> = {}): Span => ({
  traceId: "a".repeat(32),
  spanId: "b".repeat(16),
  name,
  startMs: 1_700_000_000_000.5,
  endMs: 1_700_000_001_000,
  ...more,
});

interface Received {
  readonly headers: Headers;
  readonly body: { readonly resourceSpans: readonly unknown[] };
}

const servers: { stop(): unknown }[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.stop();
});

function collector(respond: (attempt: number) => Response = () => Response.json({})) {
  const received: Received[] = [];
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      const bytes = await request.bytes();
      const isCompressed = request.headers.get("content-encoding") === "gzip";
      const text = (isCompressed ? gunzipSync(bytes) : Buffer.from(bytes)).toString();
      received.push({ headers: request.headers, body: JSON.parse(text) as Received["body"] });
      return respond(received.length);
    },
  });
  servers.push({ stop: () => server.stop(true) });
  return { url: `http://127.0.0.1:${server.port}`, received };
}

/** Timers fire as soon as they are set, so that no test waits. */
const impatient = {
  now: () => 0,
  monotonic: () => 0,
  after(_ms: number, callback: () => void): () => void {
    const timer = setTimeout(callback, 0);
    return () => clearTimeout(timer);
  },
};

interface Exported {
  readonly exporter: SpanExporter;
  readonly counts: Partial<Record<DropReason | "exported", number>>;
  readonly states: (string | undefined)[];
}

function exportTo(url: string, environment = {}, more: Partial<ExporterOptions> = {}): Exported {
  const { settings } = readTraceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: url, ...environment });
  if (!settings) throw new Error("traces are off");
  const counts: Exported["counts"] = {};
  const states: Exported["states"] = [];
  const exporter = spanExporter({
    settings,
    origin,
    onExported: (count) => (counts.exported = (counts.exported ?? 0) + count),
    onDropped: (reason, count) => (counts[reason] = (counts[reason] ?? 0) + count),
    onState: (problem) => states.push(problem),
    ...more,
  });
  return { exporter, counts, states };
}

test("sends spans as OTLP with JSON, with the configured headers", async () => {
  const { url, received } = collector();
  const { exporter, counts, states } = exportTo(url, { OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=one" });
  const attributes = { text: "a", count: 2, share: 0.5, flag: true, absent: undefined };
  const events = [{ name: "step", atMs: 1_700_000_000_600 }];
  exporter.add(span("parent"));
  exporter.add(span("child", { parentSpanId: "c".repeat(16), kind: "client", attributes, events, error: "failed" }));
  await exporter.flush(10_000);
  expect(counts).toEqual({ exported: 2 });
  expect(states).toEqual([]);
  expect(received[0]?.headers.get("x-tenant")).toBe("one");
  expect(received[0]?.headers.get("content-type")).toBe("application/json");
  const common = { traceId: "a".repeat(32), spanId: "b".repeat(16) };
  const times = { startTimeUnixNano: "1700000000000500000", endTimeUnixNano: "1700000001000000000" };
  expect(received[0]?.body).toEqual({
    resourceSpans: [
      {
        resource: { attributes: [{ key: "service.name", value: { stringValue: "test" } }] },
        scopeSpans: [
          {
            scope: { name: "scope", version: "1" },
            spans: [
              { ...common, ...times, name: "parent", kind: 1, attributes: [] },
              {
                ...common,
                ...times,
                parentSpanId: "c".repeat(16),
                name: "child",
                kind: 3,
                attributes: [
                  { key: "text", value: { stringValue: "a" } },
                  { key: "count", value: { intValue: "2" } },
                  { key: "share", value: { doubleValue: 0.5 } },
                  { key: "flag", value: { boolValue: true } },
                ],
                events: [{ name: "step", timeUnixNano: "1700000000600000000" }],
                status: { code: 2, message: "failed" },
              },
            ],
          },
        ],
      },
    ],
  });
});

test("compresses requests if that is configured", async () => {
  const { url, received } = collector();
  const { exporter } = exportTo(url, { OTEL_EXPORTER_OTLP_COMPRESSION: "gzip" });
  exporter.add(span("one"));
  await exporter.flush(10_000);
  expect(received[0]?.headers.get("content-encoding")).toBe("gzip");
  expect(received[0]?.body.resourceSpans).toHaveLength(1);
});

test("sends full batches without waiting, and drops and counts what does not fit into the queue", async () => {
  const { url, received } = collector();
  const limits = { OTEL_BSP_MAX_QUEUE_SIZE: "3", OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "2" };
  const { exporter, counts } = exportTo(url, limits);
  // The first batch of two leaves the queue immediately; then three fit.
  for (let count = 0; count < 9; count++) exporter.add(span(String(count)));
  expect(counts).toEqual({ queueFull: 4 });
  await exporter.flush(10_000);
  expect(counts).toEqual({ queueFull: 4, exported: 5 });
  expect(received).toHaveLength(3);
});

test("a full queue drops spans that no other span refers to first", async () => {
  const { url, received } = collector();
  const limits = { OTEL_BSP_MAX_QUEUE_SIZE: "3", OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "3" };
  const { exporter, counts } = exportTo(url, limits);
  const parent = { isParent: true } as const;
  // The first batch leaves the queue immediately.
  for (const name of ["1", "2", "3"]) exporter.add(span(name));
  for (const name of ["resource 1", "resource 2", "resource 3"]) exporter.add(span(name));
  exporter.add(span("run", parent));
  exporter.add(span("update", parent));
  exporter.add(span("resource 4"));
  exporter.add(span("another update", parent));
  // All that is queued are parents now.
  exporter.add(span("one update too many", parent));
  await exporter.flush(10_000);
  expect(received[1]?.body.resourceSpans).toMatchObject([
    { scopeSpans: [{ spans: [{ name: "run" }, { name: "update" }, { name: "another update" }] }] },
  ]);
  expect(counts).toEqual({ queueFull: 5, exported: 6 });
});

test("retries while the collector is overloaded, and reports when that starts and ends", async () => {
  const { url, received } = collector((attempt) =>
    attempt < 3 ? new Response("", { status: 503 }) : Response.json({}),
  );
  const { promise, resolve } = Promise.withResolvers<void>();
  const { exporter, counts, states } = exportTo(url, {}, { clock: impatient, onExported: () => resolve() });
  exporter.add(span("one"));
  await promise;
  expect(received).toHaveLength(3);
  expect(counts).toEqual({});
  expect(states).toEqual(["the collector responded with HTTP 503", undefined]);
});

test("drops and counts spans that an unreachable collector never receives", async () => {
  const { url } = collector();
  for (const server of servers.splice(0)) server.stop();
  const { promise, resolve } = Promise.withResolvers<[DropReason, number]>();
  const onDropped: ExporterOptions["onDropped"] = (reason, count) => resolve([reason, count]);
  const { exporter, states } = exportTo(url, {}, { clock: impatient, onDropped });
  exporter.add(span("one"));
  expect(await promise).toEqual(["unreachable", 1]);
  expect(states).toHaveLength(1);
});

test("does not repeat a request that the collector rejects, in whole or in part", async () => {
  const rejecting = collector(() => new Response("", { status: 400 }));
  const all = exportTo(rejecting.url);
  all.exporter.add(span("one"));
  await all.exporter.flush(10_000);
  expect(all.counts).toEqual({ rejected: 1 });
  expect(rejecting.received).toHaveLength(1);
  const part = exportTo(collector(() => Response.json({ partialSuccess: { rejectedSpans: "1" } })).url);
  part.exporter.add(span("one"));
  part.exporter.add(span("two"));
  await part.exporter.flush(10_000);
  expect(part.counts).toEqual({ rejected: 1, exported: 1 });
});

test("a collector that does not respond delays a stop only for the given time", async () => {
  const { promise: never } = Promise.withResolvers<Response>();
  const server = Bun.serve({ port: 0, fetch: () => never });
  servers.push({ stop: () => server.stop(true) });
  const { exporter } = exportTo(`http://127.0.0.1:${server.port}`, {}, { clock: impatient });
  exporter.add(span("one"));
  await exporter.flush(60_000);
});
