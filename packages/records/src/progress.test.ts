import { expect, test } from "bun:test";
import { addEvent, noProgress } from "./progress.ts";
import type { RunEvent } from "./run-event.ts";

type Resource = Extract<RunEvent, { kind: "resource" }>;

const resource = (phase: Resource["phase"], op: string, urn = "urn:a"): Resource => ({
  kind: "resource",
  phase,
  op,
  urn,
  resourceType: "t",
});

const add = (...events: readonly RunEvent[]) => events.reduce(addEvent, noProgress);

test("each finished step counts by its operation", () => {
  const steps = ["create", "update", "delete", "same", "read", "refresh"].map((op) => resource("finished", op));
  expect(add(...steps)).toMatchObject({ created: 1, updated: 1, deleted: 1, unchanged: 1, other: 2, failed: 0 });
});

test("a replacement has three steps and counts as one change", () => {
  const steps = ["create-replacement", "replace", "delete-replaced"].map((op) => resource("finished", op));
  expect(add(...steps)).toMatchObject({ created: 0, deleted: 0, replaced: 1 });
});

test("providers are not counted, as in the engine's own summary", () => {
  expect(add({ ...resource("finished", "create"), resourceType: "pulumi:providers:aws" }).created).toBe(0);
});

test("the current resource is the latest one that has not finished", () => {
  const started = add(resource("started", "create", "urn:a"), resource("started", "update", "urn:b"));
  expect(started.current).toEqual({ urn: "urn:b", op: "update" });
  expect(addEvent(started, resource("finished", "create", "urn:a")).current?.urn).toBe("urn:b");
  expect(addEvent(started, resource("failed", "update", "urn:b"))).toMatchObject({ failed: 1 });
  expect(addEvent(started, resource("failed", "update", "urn:b")).current).toBeUndefined();
  expect(addEvent(started, { kind: "summary", changes: {}, durationSeconds: 1 }).current).toBeUndefined();
});

test("counts warnings and errors and keeps the link", () => {
  const diagnostic = (severity: "info" | "warning" | "error"): RunEvent => ({
    kind: "diagnostic",
    severity,
    message: "x",
  });
  const progress = add(
    diagnostic("info"),
    diagnostic("warning"),
    diagnostic("error"),
    { kind: "permalink", url: "https://app.pulumi.com/x" },
    { kind: "notice", message: "x" },
  );
  expect(progress).toMatchObject({ warnings: 1, errors: 1, permalink: "https://app.pulumi.com/x" });
});
