import { expect, test } from "bun:test";
import { acceptedFormat, exposeProcess, metricsRegistry } from "./metrics.ts";

test("counters and gauges are exposed with help, type and labels", () => {
  const registry = metricsRegistry();
  const total = registry.counter({ name: "runs_total", help: "Runs.", labels: ["kind", "result"] });
  total.increment({ kind: "up", result: "ok" });
  total.increment({ kind: "up", result: "ok" }, 2);
  registry.gauge({ name: "active", help: "Active." }).set({}, 1.5);
  expect(registry.expose()).toBe(
    [
      "# HELP runs_total Runs.",
      "# TYPE runs_total counter",
      'runs_total{kind="up",result="ok"} 3',
      "# HELP active Active.",
      "# TYPE active gauge",
      "active 1.5",
      "",
    ].join("\n"),
  );
});

test("a metric without labels exists from the start", () => {
  const registry = metricsRegistry();
  registry.counter({ name: "restarts_total", help: "Restarts." });
  expect(registry.expose()).toContain("\nrestarts_total 0\n");
});

test("help and label values are escaped", () => {
  const registry = metricsRegistry();
  registry.gauge({ name: "g", help: "a\\b\nc", labels: ["l"] }).set({ l: 'say "hi"\\\n' }, 1);
  expect(registry.expose()).toBe('# HELP g a\\\\b\\nc\n# TYPE g gauge\ng{l="say \\"hi\\"\\\\\\n"} 1\n');
});

test("histogram buckets are cumulative and include their upper bound", () => {
  const registry = metricsRegistry();
  const seconds = registry.histogram({ name: "d_seconds", help: "D.", labels: ["c"], buckets: [0.1, 1] });
  for (const value of [0.05, 0.1, 0.5, 7]) seconds.observe({ c: "x" }, value);
  expect(registry.expose().split("\n").slice(2)).toEqual([
    'd_seconds_bucket{c="x",le="0.1"} 2',
    'd_seconds_bucket{c="x",le="1"} 3',
    'd_seconds_bucket{c="x",le="+Inf"} 4',
    'd_seconds_sum{c="x"} 7.65',
    'd_seconds_count{c="x"} 4',
    "",
  ]);
});

test("OpenMetrics has the last exemplar of each bucket, and families of counters without _total", () => {
  const registry = metricsRegistry();
  registry.counter({ name: "runs_total", help: "Runs." });
  registry.counter({ name: "odd", help: "Odd." });
  const seconds = registry.histogram({ name: "d_seconds", help: "D.", buckets: [1] });
  for (const [value, traceId] of [
    [0.1, "aa"],
    [0.2, "bb"],
    [0.3, undefined],
    [5, "cc"],
  ] as const) {
    seconds.observe({}, value, { traceId });
  }
  const timeless = registry.expose("openMetrics").replaceAll(/ \d{10}(\.\d+)?$/gm, " TIME");
  expect(timeless.split("\n")).toEqual([
    "# HELP runs Runs.",
    "# TYPE runs counter",
    "runs_total 0",
    "# HELP odd Odd.",
    "# TYPE odd unknown",
    "odd 0",
    "# HELP d_seconds D.",
    "# TYPE d_seconds histogram",
    'd_seconds_bucket{le="1"} 3 # {trace_id="bb"} 0.2 TIME',
    'd_seconds_bucket{le="+Inf"} 4 # {trace_id="cc"} 5 TIME',
    "d_seconds_sum 5.6",
    "d_seconds_count 4",
    "# EOF",
    "",
  ]);
  expect(registry.expose()).not.toContain("trace_id");
});

test.each([
  [null, "text"],
  ["*/*", "text"],
  ["text/plain;version=0.0.4;q=0.5", "text"],
  ["application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.2", "openMetrics"],
] as const)("a client that accepts %p gets the format %s", (accept, format) => {
  expect(acceptedFormat(accept)).toBe(format);
});

test("special numbers are written as Prometheus expects", () => {
  const registry = metricsRegistry();
  const gauge = registry.gauge({ name: "g", help: "G.", labels: ["l"] });
  gauge.set({ l: "a" }, Infinity);
  gauge.set({ l: "b" }, -Infinity);
  gauge.set({ l: "c" }, NaN);
  expect(registry.expose()).toContain('g{l="a"} +Inf\ng{l="b"} -Inf\ng{l="c"} NaN\n');
});

test("collectors run before each exposition until they are removed", () => {
  const registry = metricsRegistry();
  const gauge = registry.gauge({ name: "g", help: "G." });
  let calls = 0;
  const remove = registry.onCollect(() => gauge.set({}, ++calls));
  registry.expose();
  expect(registry.expose()).toContain("g 2\n");
  remove();
  expect(registry.expose()).toContain("g 2\n");
});

test("label sets beyond the limit are dropped and counted, existing ones are updated", () => {
  const registry = metricsRegistry();
  const total = registry.counter({ name: "t_total", help: "T.", labels: ["ns"], maxSeries: 2 });
  for (const ns of ["a", "b", "c", "d", "a"]) total.increment({ ns });
  const text = registry.expose();
  expect(text).toContain('t_total{ns="a"} 2\nt_total{ns="b"} 1\n');
  expect(text).not.toContain('ns="c"');
  expect(text).toContain('metrics_series_dropped_total{metric="t_total"} 2\n');
});

test("label sets of a gauge can be removed", () => {
  const registry = metricsRegistry();
  const gauge = registry.gauge({ name: "g", help: "G.", labels: ["ns"] });
  gauge.set({ ns: "a" }, 1);
  gauge.set({ ns: "b" }, 1);
  gauge.remove({ ns: "a" });
  expect(registry.expose()).not.toContain('ns="a"');
  gauge.clear();
  expect(registry.expose()).not.toContain('ns="b"');
});

test("a name belongs to one metric", () => {
  const registry = metricsRegistry();
  const names = { name: "t_total", help: "T.", labels: ["a"] } as const;
  registry.counter(names).increment({ a: "x" });
  registry.counter(names).increment({ a: "x" });
  expect(registry.expose()).toContain('t_total{a="x"} 2\n');
  expect(() => registry.gauge(names)).toThrow("another shape");
  expect(() => registry.counter({ ...names, labels: ["b"] })).toThrow("another shape");
});

test("invalid names and decreasing counters are rejected", () => {
  const registry = metricsRegistry();
  expect(() => registry.counter({ name: "a-b", help: "" })).toThrow("invalid metric name");
  expect(() => registry.counter({ name: "a", help: "", labels: ["__x"] })).toThrow("invalid label name");
  expect(() => registry.histogram({ name: "h", help: "", labels: ["le"], buckets: [1] })).toThrow("le");
  expect(() => registry.counter({ name: "a", help: "" }).increment({}, -1)).toThrow("cannot decrease");
});

test("the memory, CPU time and open files of the process are exposed", () => {
  const registry = metricsRegistry();
  exposeProcess(registry);
  expect(registry.expose()).toMatch(/process_resident_memory_bytes \d{7,}\n/);
  expect(registry.expose()).toMatch(/process_heap_bytes \d{6,}\n/);
  expect(registry.expose()).toMatch(/process_cpu_seconds_total \d/);
  expect(registry.expose()).toMatch(/process_open_fds [1-9]/);
});
