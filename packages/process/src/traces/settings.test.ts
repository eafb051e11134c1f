import { expect, test } from "bun:test";

import { isSampled, readTraceSettings } from "./settings.ts";

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };

test.each([
  ["nothing", {}],
  ["an empty endpoint", { OTEL_EXPORTER_OTLP_ENDPOINT: " " }],
  ["a disabled SDK", { ...endpoint, OTEL_SDK_DISABLED: "TRUE" }],
  ["no exporter", { ...endpoint, OTEL_TRACES_EXPORTER: "none" }],
  ["only a name", { OTEL_SERVICE_NAME: "operator" }],
])("traces are off with %s", (_, environment) => {
  expect(readTraceSettings(environment)).toEqual({ problems: [] });
});

test.each([
  ["zipkin is chosen", { OTEL_TRACES_EXPORTER: "zipkin" }, "only otlp is supported"],
  ["gRPC is chosen", { ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, "usually 4318"],
  ["the endpoint is no URL", { OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4317" }, "not an http or https URL"],
])("traces are off, with the reason, if %s", (_, environment, problem) => {
  const { settings, problems } = readTraceSettings(environment);
  expect(settings).toBeUndefined();
  expect(problems.join()).toContain(problem);
});

test("an endpoint is enough, and everything else has the defaults of the standard", () => {
  expect(readTraceSettings(endpoint)).toEqual({
    problems: [],
    settings: {
      url: "http://collector:4318/v1/traces",
      headers: {},
      isCompressed: false,
      timeoutMs: 10_000,
      resource: {},
      ratio: 1,
      queueSize: 2048,
      batchSize: 512,
      delayMs: 5000,
    },
  });
  expect(readTraceSettings({ OTEL_TRACES_EXPORTER: "otlp" }).settings?.url).toBe("http://localhost:4318/v1/traces");
});

test("a compression or protocol that is not supported is reported, and the default is used", () => {
  const { settings, problems } = readTraceSettings({
    ...endpoint,
    OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: "zstd",
    OTEL_EXPORTER_OTLP_PROTOCOL: "thrift",
  });
  expect(settings).toMatchObject({ isCompressed: false });
  expect(problems).toEqual([
    "OTEL_EXPORTER_OTLP_PROTOCOL is not http/json or http/protobuf",
    "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION is not none or gzip",
  ]);
});

test("variables for traces take precedence, and lists are decoded", () => {
  const { settings, problems } = readTraceSettings({
    ...endpoint,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://tempo/otlp/v1/traces",
    OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=one,authorization=Basic%20abc=",
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: "x-tenant=two",
    OTEL_EXPORTER_OTLP_CERTIFICATE: "/ca.pem",
    OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
    OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: "3000",
    OTEL_SERVICE_NAME: "operator",
    OTEL_RESOURCE_ATTRIBUTES: "service.name=ignored,deployment.environment.name=prod",
    OTEL_TRACES_SAMPLER: "traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0.25",
    OTEL_BSP_MAX_QUEUE_SIZE: "100",
  });
  expect(problems).toEqual([]);
  expect(settings).toMatchObject({
    url: "https://tempo/otlp/v1/traces",
    headers: { "x-tenant": "two", authorization: "Basic abc=" },
    certificate: "/ca.pem",
    isCompressed: true,
    timeoutMs: 3000,
    resource: { "service.name": "operator", "deployment.environment.name": "prod" },
    ratio: 0.25,
    batchSize: 100,
  });
});

test("a value that cannot be used is reported, and its default applies", () => {
  const { settings, problems } = readTraceSettings({
    ...endpoint,
    OTEL_TRACES_SAMPLER: "jaeger_remote",
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "0.5",
    OTEL_BSP_SCHEDULE_DELAY: "soon",
  });
  expect(settings).toMatchObject({ ratio: 1, batchSize: 512, delayMs: 5000 });
  expect(problems).toEqual([
    "OTEL_TRACES_SAMPLER is jaeger_remote, which is not supported",
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE is not a positive integer",
    "OTEL_BSP_SCHEDULE_DELAY is not a positive integer",
  ]);
  const invalid = { ...endpoint, OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "2" };
  expect(readTraceSettings(invalid).problems).toEqual(["OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1"]);
});

test.each([
  ["always_off", 0],
  ["parentbased_always_off", 0],
  ["parentbased_always_on", 1],
])("the sampler %s records a share of %p", (sampler, ratio) => {
  expect(readTraceSettings({ ...endpoint, OTEL_TRACES_SAMPLER: sampler }).settings?.ratio).toBe(ratio);
});

test("the ID decides whether a trace is recorded", () => {
  const [low, high] = [`${"0".repeat(24)}10000000`, "f".repeat(32)];
  expect([0, 0.05, 0.1, 1].map((ratio) => isSampled(low, ratio))).toEqual([false, false, true, true]);
  expect([0, 0.99, 1].map((ratio) => isSampled(high, ratio))).toEqual([false, false, true]);
});
