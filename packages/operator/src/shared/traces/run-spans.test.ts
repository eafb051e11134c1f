import type { NumberedEvent, RunEvent } from "@pko/records";
import type { RunResult } from "@pko/rpc";
import { expect, test } from "bun:test";

import { RunSpans, runSpanId } from "./run-spans.ts";

const start = Date.parse("2026-01-01T00:00:00Z");
const at = (seconds: number): string => new Date(start + seconds * 1000).toISOString();
const numbered = (seq: number, event: RunEvent): NumberedEvent => ({ seq, time: at(seq), event });
const step = (name: string): RunEvent => ({ kind: "step", name });
const resource = (phase: "started" | "finished" | "failed", durationMs?: number): RunEvent => ({
  kind: "resource",
  phase,
  op: "create",
  urn: "urn:pulumi:dev::shop::aws:s3/bucket:Bucket::site",
  resourceType: "aws:s3/bucket:Bucket",
  ...(durationMs !== undefined && { durationMs }),
});
const result = (more: Partial<RunResult> = {}): RunResult => ({
  outcome: "succeeded",
  operation: "up",
  stack: "dev",
  revision: "abc",
  startedAt: at(0),
  finishedAt: at(10),
  progress: { created: 0, updated: 0, deleted: 0, replaced: 0, unchanged: 0, failed: 0 } as never,
  changes: {},
  output: { tail: "", bytes: 0, truncated: false },
  ...more,
});

const events = [
  numbered(1, step("refresh")),
  numbered(2, step("up")),
  numbered(3, resource("started")),
  numbered(4, resource("finished", 1000)),
  numbered(5, { kind: "notice", message: "n" }),
];

test("a run has a span for each command, and in it one for each resource", () => {
  const run = new RunSpans("uid", "root");
  const spans = [...events.flatMap((event) => run.add(event)), ...run.end(result(), 0)];
  expect(spans.map(({ name, startMs, endMs }) => [name, (startMs - start) / 1000, (endMs - start) / 1000])).toEqual([
    ["pulumi refresh", 1, 2],
    ["create aws:s3/bucket:Bucket", 3, 4],
    ["pulumi up", 2, 10],
    ["run", 0, 10],
  ]);
  const [, bucket, up, whole] = spans;
  expect(bucket?.parentSpanId).toBe(up?.spanId);
  expect(up?.parentSpanId).toBe(runSpanId("uid"));
  expect(whole).toMatchObject({ spanId: runSpanId("uid"), parentSpanId: "root" });
  expect(whole).not.toHaveProperty("error");
  expect(bucket?.attributes).toEqual({
    "pulumi.resource.urn": "urn:pulumi:dev::shop::aws:s3/bucket:Bucket::site",
    "pulumi.resource.name": "site",
    "pulumi.resource.type": "aws:s3/bucket:Bucket",
    "pulumi.resource.operation": "create",
  });
});

test("another process that reads the same events records the same spans", () => {
  const [one, other] = [new RunSpans("uid", "root"), new RunSpans("uid", "root")];
  expect(events.flatMap((event) => one.add(event))).toEqual(events.flatMap((event) => other.add(event)));
});

test("an event that is read twice counts once", () => {
  const run = new RunSpans("uid", "root");
  for (const event of events) run.add(event);
  expect(events.flatMap((event) => run.add(event))).toEqual([]);
});

test("the spans of a failed run show the error, and those of a failed resource that it failed", () => {
  const run = new RunSpans("uid", "root");
  run.add(numbered(1, step("up")));
  expect(run.add(numbered(2, resource("failed")))).toMatchObject([{ error: "the operation failed" }]);
  const error = { class: "programError" as const, message: "the program failed", lines: [] };
  expect(run.end(result({ outcome: "failed", error }), 0)).toMatchObject([
    { name: "pulumi up", error: "the program failed" },
    { name: "run", error: "the program failed", attributes: { "error.type": "programError" } },
  ]);
});

test("a run without a result ends when that is known", () => {
  const run = new RunSpans("uid", "root");
  expect(run.end(undefined, start)).toEqual([]);
  run.add(numbered(1, step("up")));
  expect(run.end(undefined, start + 60_000)).toMatchObject([
    { name: "pulumi up", error: "the result of the run is unknown" },
    { name: "run", startMs: start + 1000, endMs: start + 60_000, error: "the result of the run is unknown" },
  ]);
});
