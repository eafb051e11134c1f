import { containing, hour, minute, started, table } from "../testing/plans.ts";
import {
  completed,
  condition,
  deletedAgo,
  noon,
  podIs,
  run,
  running,
  startedIn,
  withFinalizer,
  withSpec,
  withStatus,
  workspaceReady,
} from "../testing/views.ts";

const removesFinalizer = { steps: [{ kind: "forgetRun" }, { kind: "removeFinalizer" }], isWritten: false };
const stays = { steps: [{ kind: "forgetRun" }], isWritten: false, requeueAt: undefined };
const expires = {
  steps: [{ kind: "forgetRun" }, { kind: "deleteExpired" }],
  isWritten: false,
  events: [{ type: "Normal", reason: "UpdateExpired" }],
};

table("a complete Update", [
  ["has its finalizer removed", [withFinalizer, completed(hour)], removesFinalizer],
  ["stays forever without a TTL", [completed(hour)], stays],
  [
    "stays until its TTL expires",
    [completed(minute), (view) => ({ ...view, ttlMs: hour })],
    { ...stays, requeueAt: noon + hour - minute },
  ],
  [
    "is deleted when its TTL has expired",
    [completed(hour), withSpec({ ttlAfterCompleted: "1h" }), (view) => ({ ...view, ttlMs: hour })],
    { ...expires, events: [{ reason: "UpdateExpired", message: containing("was kept for 1h.") }] },
  ],
  [
    "is deleted even if the operator that completed it recorded no end time",
    [withStatus({ conditions: [condition("Complete", "True", "Failed")] }), (view) => ({ ...view, ttlMs: 30_000 })],
    expires,
  ],
  ["is deleted immediately with a TTL of zero", [completed(0), (view) => ({ ...view, ttlMs: 0 })], expires],
  [
    "is not deleted before its finalizer is removed",
    [withFinalizer, completed(hour), (view) => ({ ...view, ttlMs: 0 })],
    removesFinalizer,
  ],
  [
    "is not deleted again while it is being deleted",
    [completed(hour), deletedAgo(minute), (view) => ({ ...view, ttlMs: 0 })],
    stays,
  ],
  [
    "ignores a run that is still followed",
    [workspaceReady, startedIn("pod-a"), completed(hour), run(running())],
    stays,
  ],
  ["ignores a new pod", [workspaceReady, podIs("pod-b"), startedIn("pod-a"), completed(hour)], stays],
  ["has its finalizer removed when it is deleted", [...started, completed(0), deletedAgo(minute)], removesFinalizer],
  ["needs nothing more once the finalizer is removed", [workspaceReady, completed(0), deletedAgo(minute)], stays],
]);
