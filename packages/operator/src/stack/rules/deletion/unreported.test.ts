import { expect, test } from "bun:test";
import { pullRequestAnnotation } from "@pko/api";

import { anUpdate, cases, failed, messageFor, now, viewOf } from "../../testing/views.ts";
import { planStack } from "../index.ts";

const ended = anUpdate({ type: "preview", state: "failed", deleting: true });
const abandoned = {
  deleting: true,
  deletedAgo: 10,
  spec: { preview: true },
  last: failed({ type: "preview", name: ended.name }),
  updates: [ended],
  unreported: [ended.name],
} as const;

cases("a preview that is deleted while the forge shows that it runs", [
  ["keeps its Update", abandoned, "none: StackProcessing"],
  ["records its result first", { ...abandoned, last: failed() }, "recordResult: PreviewFailed"],
  [
    "is deleted when the forge shows the end",
    { ...abandoned, updates: [], unreported: [] },
    "removeFinalizer: unchanged",
  ],
  ["is deleted after two minutes", { ...abandoned, updates: [], deletedAgo: 120 }, "removeFinalizer: unchanged"],
  ["is deleted if the clock is wrong", { ...abandoned, updates: [], deletedAgo: -3600 }, "removeFinalizer: unchanged"],
  [
    "withdraws an Update that has not started without delay",
    { ...abandoned, updates: [anUpdate({ type: "preview" })] },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "cancels a running Update without delay",
    { ...abandoned, cancelled: "web-now", updates: [anUpdate({ type: "preview", startedAt: now })] },
    "withdrawUpdate: StackProcessing",
  ],
  ["has nothing to keep without our finalizer", { ...abandoned, updates: [], finalizer: false }, "none: unchanged"],
]);

const running = anUpdate({ type: "preview", startedAt: now });
const pullRequest = { spec: { preview: true }, annotations: { [pullRequestAnnotation]: "7" }, updates: [running] };
cases("a running preview of a pull request", [
  [
    "is cancelled when its Stack is deleted, whoever deletes it",
    { ...pullRequest, deleting: true },
    "withdrawUpdate: StackProcessing",
  ],
  [
    "is cancelled once",
    { ...pullRequest, deleting: true, updates: [{ ...running, deleting: true }] },
    "none: StackProcessing",
  ],
  ["is not cancelled while its Stack exists", pullRequest, "none: StackProcessing"],
  [
    "is not cancelled if it previews no pull request",
    { ...pullRequest, deleting: true, annotations: {} },
    "none: StackProcessing",
  ],
  [
    "is not cancelled if it deploys, and the spec has changed",
    { ...pullRequest, deleting: true, updates: [anUpdate({ startedAt: now })] },
    "none: StackProcessing",
  ],
]);

test("the status says for what a deletion waits, and until when", () => {
  expect(messageFor(abandoned)).toBe(
    "The Stack is deleted when the forge shows the end of Update web-now, at the latest at 2030-01-01T12:01:50Z.",
  );
  expect(planStack(viewOf(abandoned)).requeueAt).toBe(now + 110_000);
});
