import { logger, metricsRegistry, silentLogger } from "@pko/kube";
import { expect, test } from "bun:test";

import { createTracer } from "./tracer.ts";

const span = { traceId: "a".repeat(32), spanId: "b".repeat(16), name: "n", startMs: 1, endMs: 2 };

test("without an endpoint, traces are off", () => {
  const metrics = metricsRegistry();
  expect(createTracer({ environment: {}, podName: "p", log: silentLogger, metrics })).toBeUndefined();
  expect(metrics.expose()).not.toContain("trace_spans");
});

test("a setting that cannot be used is reported, and does not prevent the start", () => {
  const lines: string[] = [];
  const log = logger({ write: (line) => lines.push(line) });
  const environment = {
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://me:secret@127.0.0.1:1",
    OTEL_EXPORTER_OTLP_CERTIFICATE: "/does/not/exist",
    OTEL_TRACES_SAMPLER: "odd",
  };
  expect(createTracer({ environment, podName: "p", log, metrics: metricsRegistry() })).toBeDefined();
  expect(lines.filter((line) => line.includes("a setting of traces is ignored"))).toHaveLength(2);
  expect(lines.join("")).toContain('"endpoint":"http://127.0.0.1:1"');
});

test("spans are sent without credentials, and counted", async () => {
  const received: string[] = [];
  using server = Bun.serve({
    port: 0,
    async fetch(request) {
      received.push(await request.text());
      return Response.json({});
    },
  });
  const metrics = metricsRegistry();
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${server.port}`, OTEL_SERVICE_NAME: "mine" };
  const tracer = createTracer({ environment, podName: "operator-0", log: silentLogger, metrics });
  const token = `ghp_${"a".repeat(36)}`;
  tracer?.record({ ...span, name: `x ${token}`, attributes: { url: `https://me:${token}@host/a` }, error: token });
  await tracer?.flush();
  // On a busy machine, the flush may give up before the response.
  const isSent = (): boolean => metrics.expose().includes("trace_spans_exported_total 1\n");
  for (let tries = 0; tries < 1000 && !isSent(); tries++) await Bun.sleep(10);
  expect(received.join()).not.toContain(token);
  expect(received.join()).toContain("https://[secret]@host/a");
  expect(received.join()).toContain('{"key":"service.name","value":{"stringValue":"mine"}}');
  expect(received.join()).toContain('{"key":"k8s.pod.name","value":{"stringValue":"operator-0"}}');
  expect(metrics.expose()).toContain("trace_spans_exported_total 1\n");
  expect(metrics.expose()).toContain('trace_spans_dropped_total{reason="unreachable"} 0\n');
});

test.each([
  ["no time", Number.NaN],
  ["a time before 1970", -1],
  ["a time that is too late", 1e13],
  ["an infinite time", Infinity],
])("a span with %s is dropped, because a collector would reject those of others with it", async (_, endMs) => {
  const metrics = metricsRegistry();
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" };
  const tracer = createTracer({ environment, podName: "p", log: silentLogger, metrics });
  tracer?.record({ ...span, endMs });
  await tracer?.flush();
  expect(metrics.expose()).toContain('trace_spans_dropped_total{reason="invalid"} 1\n');
  expect(metrics.expose()).toContain('trace_spans_dropped_total{reason="unreachable"} 0\n');
});
