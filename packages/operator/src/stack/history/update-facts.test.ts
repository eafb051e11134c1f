import { expect, test } from "bun:test";
import type { Update } from "@pko/api";

import { ago } from "../testing/views.ts";
import { updateFacts } from "./update-facts.ts";

test("a conflict of the Go operator is recognized by its message", () => {
  const update = (message: string): Update => ({
    apiVersion: "auto.pulumi.com/v1alpha1",
    kind: "Update",
    metadata: { name: "u" },
    spec: { type: "up" },
    status: {
      message,
      conditions: [{ type: "Failed", status: "True", reason: "UpdateFailed", message: "", lastTransitionTime: ago(0) }],
    },
  });
  expect(updateFacts(update("error: [409] Conflict: Another update is currently in progress.")).failure).toBe(
    "conflict",
  );
  expect(updateFacts(update("error: something else")).failure).toBeUndefined();
});

const updateWith = (status: Update["status"] & object): Update => ({
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Update",
  metadata: { name: "u" },
  spec: { type: "up" },
  status,
});
const condition = (type: string, reason: string, message = "") =>
  ({ type, status: "True", reason, message, lastTransitionTime: ago(0) }) as const;

test("an Update that timed out has that failure", () => {
  const view = updateFacts(updateWith({ errorClass: "timedOut", conditions: [condition("Failed", "TimedOut")] }));
  expect(view).toMatchObject({ state: "failed", failure: "timedOut" });
});

test("an Update that succeeded has a warning about pending operations", () => {
  const pendingOperations = [{ urn: "urn:a", operation: "creating" }];
  const conditions = [condition("Complete", "Updated")];
  expect(updateFacts(updateWith({ pendingOperations, conditions })).warning).toContain("creating urn:a");
  expect(updateFacts(updateWith({ conditions })).warning).toBeUndefined();
});

test("an Update stalls because its node may be lost, or because it is not stopped", () => {
  const stallFor = (reason: string) =>
    updateFacts(updateWith({ conditions: [condition("Stalled", reason, "why")] })).stall;
  expect(stallFor("NodeLost")).toEqual({ reason: "NodeLost", message: "why" });
  expect(stallFor("NotStopped")).toEqual({ reason: "UpdateNotStopped", message: "why" });
});

test("an Update that was to keep a plan has failed without one", () => {
  const plan = {
    digest: "sha256:a",
    secretNames: [],
    changes: true,
    destructive: false,
    unknownInputs: 0,
    summary: "",
  };
  const update = (status: Update["status"]): Update => ({
    apiVersion: "auto.pulumi.com/v1alpha1",
    kind: "Update",
    metadata: { name: "u" },
    spec: { type: "preview", savePlan: true },
    status: {
      conditions: [{ type: "Complete", status: "True", reason: "Updated", message: "", lastTransitionTime: ago(0) }],
      ...status,
    },
  });
  expect(updateFacts(update({ plan }))).toMatchObject({ state: "succeeded", isPlan: true, plan });
  const without = updateFacts(update({}));
  expect(without.state).toBe("failed");
  expect(without.message).toBe("The changes could not be planned: the preview succeeded, but kept no plan");
});
