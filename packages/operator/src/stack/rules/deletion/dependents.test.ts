import { expect, test } from "bun:test";

import { stackEventsFor } from "../../events.ts";
import { anUpdate, cases, creating, messageFor, now, succeeded, viewOf } from "../../testing/views.ts";
import type { DependentView } from "../../view.ts";
import { planStack } from "../index.ts";

const deleted = { deleting: true, spec: { destroyOnFinalize: true }, last: succeeded() } as const;
const kept = { deleting: true, last: succeeded() } as const;
const dependent = (changes: Partial<DependentView> = {}): DependentView => ({
  name: "app",
  deleting: false,
  wantsDestroy: true,
  isInCycle: false,
  ...changes,
});
const [live, dying] = [dependent(), dependent({ deleting: true })];
const keptApp = dependent({ deleting: true, wantsDestroy: false });

cases("a Stack that is being deleted", [
  ["is destroyed if no Stack depends on it", deleted, creating("destroy for destroy")],
  [
    "waits for a dependent that is being deleted, however long that takes",
    { ...deleted, dependents: [dying], deletedAgo: 9999 },
    "none: WaitingForDependents",
  ],
  [
    "waits a moment for the deletion of a live dependent",
    { ...deleted, dependents: [live], deletedAgo: 14 },
    "none: WaitingForDependents",
  ],
  [
    "is destroyed although a live dependent is not deleted",
    { ...deleted, dependents: [live], deletedAgo: 15 },
    creating("destroy for destroy"),
  ],
  [
    "does not wait for a Stack that depends on it in a cycle",
    { ...deleted, dependents: [dependent({ deleting: true, isInCycle: true })], deletedAgo: 0 },
    creating("destroy for destroy"),
  ],
  [
    "is kept, if it is protected, regardless of its dependents",
    { ...deleted, spec: { destroyOnFinalize: true, protect: true }, dependents: [dying] },
    "none: Protected",
  ],
  [
    "waits for a dependent that is deleted without a destroy",
    { ...deleted, dependents: [keptApp], deletedAgo: 0 },
    "none: WaitingForDependents",
  ],
  [
    "keeps a running destroy although a dependent is deleted later",
    { ...deleted, dependents: [dying], updates: [anUpdate({ type: "destroy", startedAt: now })] },
    "none: StackProcessing",
  ],
  [
    "removes the finalizer when it is destroyed",
    { ...deleted, last: succeeded({ type: "destroy" }), dependents: [dying] },
    "removeFinalizer: unchanged",
  ],
  [
    "removes the finalizer if nothing was deployed",
    { deleting: true, spec: { destroyOnFinalize: true }, dependents: [dying] },
    "removeFinalizer: unchanged",
  ],
]);

cases("a Stack that is deleted without a destroy", [
  [
    "waits for the destroy of a dependent, which may need its outputs",
    { ...kept, dependents: [dying] },
    "none: WaitingForDependents",
  ],
  [
    "waits a moment for the deletion of a dependent that will be destroyed",
    { ...kept, dependents: [live], deletedAgo: 1 },
    "none: WaitingForDependents",
  ],
  [
    "does not wait for dependents that are not destroyed",
    { ...kept, dependents: [keptApp], deletedAgo: 0 },
    "removeFinalizer: unchanged",
  ],
]);

test("the message names the dependents and when the deletion continues", () => {
  const both = [live, dependent({ name: "dns" })];
  expect(messageFor({ ...deleted, dependents: both, deletedAgo: 5 })).toBe(
    "Stack app, Stack dns depend on this Stack and are not being deleted. " +
      "The deletion continues without waiting for them at 2030-01-01T12:00:10Z.",
  );
  expect(messageFor({ ...deleted, dependents: [dying] })).toBe(
    "Stack app is being deleted and may still need this Stack, whose deletion continues afterwards.",
  );
});

test("the Stack is requeued when it stops waiting for live dependents", () => {
  expect(planStack(viewOf({ ...deleted, dependents: [live], deletedAgo: 5 })).requeueAt).toBe(now + 10_000);
});

test("an event reports dependents that were not waited for", () => {
  const view = viewOf({ ...deleted, dependents: [live, dependent({ name: "b", isInCycle: true })] });
  const warnings = stackEventsFor(view, planStack(view)).filter(({ reason }) => reason === "StackDependentsIgnored");
  expect(warnings.map(({ message }) => message)).toEqual([
    "Stack app depends on this Stack and is not being deleted; its resources are destroyed nevertheless.",
    "This Stack and Stack b depend on each other, so they are destroyed in any order.",
  ]);
});
