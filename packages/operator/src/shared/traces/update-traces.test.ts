import type { Update } from "@pko/api";
import { manualClock } from "@pko/kube";
import { traceIdIn, traceIdOf, type Span } from "@pko/process/traces";
import { expect, test } from "bun:test";

import { UpdateTraces, type TracedPass } from "./update-traces.ts";

const workspace = "team/shop";

function scene({ isSampled = true } = {}) {
  const clock = manualClock();
  const spans: Span[] = [];
  const tracer = { isSampled: () => isSampled, record: (span: Span) => spans.push(span), flush: async () => undefined };
  const traces = new UpdateTraces(tracer, clock);
  const update = (uid: string, isComplete = false): Update => ({
    apiVersion: "auto.pulumi.com/v1alpha1",
    kind: "Update",
    metadata: {
      name: `shop-${uid}`,
      namespace: "team",
      uid,
      creationTimestamp: new Date(clock.now()).toISOString(),
      labels: { "pulumi.com/stack-name": "shop" },
      annotations: { "pulumi.com/trigger-reason": "commit abc" },
    },
    spec: { workspaceName: "shop", stackName: "dev", type: "up" },
    ...(isComplete && { status: { conditions: [{ type: "Complete", status: "True" }] as never } }),
  });
  const pass = (kind: TracedPass["kind"], ...steps: string[]): TracedPass => ({
    kind,
    reconcileID: "id",
    startMs: clock.now(),
    steps,
  });
  const stackPassed = (...steps: string[]) => traces.stackPassed(workspace, pass("Stack", ...steps), undefined);
  const upToDate = (...steps: string[]) =>
    traces.stackPassed(workspace, { ...pass("Stack", ...steps), isUpToDate: true }, undefined);
  const updatePassed = (uid: string, ...steps: string[]) => traces.updatePassed(update(uid), pass("Update", ...steps));
  const found = () => traces.commitFound(workspace, { startMs: clock.now(), host: "git.example.com", commit: "abc" });
  const end = (uid: string, reason = "UpdateSucceeded") =>
    traces.updateEnded(update(uid), { reason, message: "the message" });
  const names = () => spans.map(({ name }) => name);
  return { clock, spans, traces, pass, update, stackPassed, upToDate, updatePassed, found, end, names };
}

test("everything from the commit to the result is one connected trace", async () => {
  const { clock, spans, traces, pass, stackPassed, updatePassed, found, end, names } = scene();
  const startMs = clock.now();
  found();
  await clock.advance(100);
  stackPassed("applyWorkspace");
  traces.workspacePassed(workspace, pass("Workspace", "applyObjects"));
  traces.prepared(workspace, { startMs: clock.now(), phases: [{ phase: "source", startMs: clock.now() }] });
  stackPassed("createUpdate");
  expect(spans).toEqual([]);
  updatePassed("one", "addFinalizer");
  traces.runEvent("one", {
    seq: 1,
    time: new Date(clock.now()).toISOString(),
    event: { kind: "step", name: "up" },
  });
  await clock.advance(1000);
  end("one");
  expect(names()).toEqual([
    "git poll",
    "reconcile Stack",
    "reconcile Workspace",
    "prepare",
    "prepare source",
    "reconcile Stack",
    "reconcile Update",
    "pulumi up",
    "run",
    "update up",
  ]);
  const ids = new Map(spans.map((span) => [span.spanId, span]));
  expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([traceIdOf("one")]));
  expect(spans.filter(({ parentSpanId }) => parentSpanId === undefined).map(({ name }) => name)).toEqual(["update up"]);
  expect(spans.every(({ parentSpanId }) => parentSpanId === undefined || ids.has(parentSpanId))).toBe(true);
  // A full queue drops these last.
  const parents = new Set(spans.map(({ parentSpanId }) => parentSpanId));
  expect(spans.filter(({ spanId, isParent }) => parents.has(spanId) && !isParent)).toEqual([]);
  expect(spans.at(-1)).toMatchObject({
    startMs,
    attributes: { "pulumi.trigger": "commit abc", "pulumi.stack.object": "shop", "pulumi.reason": "UpdateSucceeded" },
  });
});

test("the root shows why an Update failed, and the parent of Pulumi's spans is the run", () => {
  const { spans, traces, updatePassed, end } = scene();
  updatePassed("one");
  end("one", "UpdateFailed");
  expect(spans).toMatchObject([{ name: "update up", error: "the message" }]);
  expect(traceIdIn(traces.traceparent("one"))).toBe(traceIdOf("one"));
  expect(traces.traceparent("one")).toEndWith("-01");
});

test("what happens to a Workspace during an Update belongs to it, and what happens between Updates to none", () => {
  const { traces, pass, updatePassed, end, names, stackPassed } = scene();
  updatePassed("one");
  traces.workspacePassed(workspace, pass("Workspace", "applyObjects"));
  end("one");
  traces.workspacePassed(workspace, pass("Workspace", "scaleToZero"));
  stackPassed("deleteUpdates");
  updatePassed("two");
  expect(names()).toEqual(["reconcile Workspace", "update up"]);
});

test("a commit for which nothing runs is not part of the next Update", () => {
  const { updatePassed, found, stackPassed, upToDate, names } = scene();
  found();
  upToDate("recordSkippedCommit");
  stackPassed("createUpdate");
  updatePassed("one");
  expect(names()).toEqual(["reconcile Stack"]);
});

test("a commit whose update has to wait is part of its trace", async () => {
  const { clock, spans, updatePassed, found, stackPassed, names, end } = scene();
  const startMs = clock.now();
  found();
  stackPassed();
  await clock.advance(60_000);
  stackPassed("createUpdate");
  updatePassed("one");
  end("one");
  expect(names()).toEqual(["git poll", "reconcile Stack", "update up"]);
  expect(spans.at(-1)?.startMs).toBe(startMs);
});

test("a pass that started before a poll does not discard what the poll has found", async () => {
  const { clock, traces, pass, updatePassed, found, stackPassed, names } = scene();
  const early = { ...pass("Stack"), isUpToDate: true };
  await clock.advance(1);
  found();
  traces.stackPassed(workspace, early, undefined);
  stackPassed("createUpdate");
  updatePassed("one");
  expect(names()).toEqual(["git poll", "reconcile Stack"]);
});

test("an Update whose end no pass has seen ends with the next one, and the next Update has its own trace", () => {
  const { spans, traces, pass, update, updatePassed, names } = scene();
  updatePassed("one");
  traces.updatePassed(update("one", true), pass("Update"));
  updatePassed("two");
  traces.workspacePassed(workspace, pass("Workspace", "applyObjects"));
  expect(names()).toEqual(["update up", "reconcile Workspace"]);
  expect(spans.at(-1)?.traceId).toBe(traceIdOf("two"));
});

test("what led to no Update within an hour is not part of a later one", async () => {
  const { clock, updatePassed, stackPassed, names } = scene();
  stackPassed("applyWorkspace");
  await clock.advance(3_600_001);
  stackPassed("createUpdate");
  updatePassed("one");
  expect(names()).toEqual(["reconcile Stack"]);
});

test("the pass that records the result belongs to its Update, although that has ended", () => {
  const { spans, traces, pass, end, updatePassed } = scene();
  updatePassed("one");
  end("one");
  traces.stackPassed(workspace, pass("Stack", "recordResult"), "one");
  expect(spans.at(-1)).toMatchObject({ traceId: traceIdOf("one"), name: "reconcile Stack" });
});

test("passes without changes, and those over an Update that has ended, are no spans", () => {
  const { traces, pass, update, updatePassed, end, names } = scene();
  updatePassed("one");
  traces.workspacePassed(workspace, pass("Workspace"));
  end("one");
  traces.updatePassed(update("one", true), pass("Update", "removeFinalizer"));
  expect(names()).toEqual(["update up"]);
});

test("a restarted operator continues the trace of an Update", () => {
  const [before, after] = [scene(), scene()];
  before.updatePassed("one", "addFinalizer");
  after.end("one");
  expect(before.spans[0]?.traceId).toBe(after.spans[0]?.traceId);
  expect(before.spans[0]?.parentSpanId).toBe(after.spans[0]?.spanId);
});

test("nothing is recorded of a trace that is not sampled, and Pulumi records nothing either", () => {
  const { traces, stackPassed, updatePassed, end, names } = scene({ isSampled: false });
  stackPassed("createUpdate");
  updatePassed("one", "addFinalizer");
  end("one");
  expect(names()).toEqual([]);
  expect(traces.traceId("one")).toBeUndefined();
  expect(traces.traceparent("one")).toEndWith("-00");
});
