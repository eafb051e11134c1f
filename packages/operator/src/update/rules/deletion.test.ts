import { endsAs, fails, hour, minute, started, succeeds, table } from "../testing/plans.ts";
import {
  deletedAgo,
  finished,
  noon,
  noPod,
  podOverdue,
  refused,
  run,
  running,
  withFinalizer,
  withSpec,
  workspaceReady,
} from "../testing/views.ts";

const cancels = { steps: [{ kind: "cancelRun", pod: { uid: "pod-a" }, runId: "update-uid-1206" }], isWritten: true };
const applying = withSpec({ applyPlan: { updateName: "web-plan", updateUid: "plan-uid", digest: "sha256:plan" } });
const unreachable = run({ state: "unreachable", message: "x", sinceMs: noon });

table("an Update that is deleted", [
  ["before it starts ends as cancelled", [workspaceReady, deletedAgo(0), withFinalizer], endsAs("Canceled")],
  ["before it starts ends as cancelled also without its Workspace", [deletedAgo(0), withFinalizer], endsAs("Canceled")],
  [
    "before it starts releases the Approval of its plan",
    [workspaceReady, deletedAgo(0), withFinalizer, applying],
    endsAs("Canceled", "releaseApproval"),
  ],
  [
    "after it may have started does not release the Approval of its plan",
    [...started, deletedAgo(minute), applying, noPod],
    endsAs("Aborted", "confirmPodDeleted"),
  ],
  ["is never started, only cancelled", [...started, deletedAgo(0)], cancels],
  [
    "while it runs is cancelled",
    [...started, deletedAgo(minute), run(running())],
    { ...cancels, conditions: { Progressing: "True/Progressing" } },
  ],
  [
    "while the agent is busy with another run is cancelled",
    [...started, deletedAgo(minute), run(refused("busy"))],
    cancels,
  ],
  [
    "while the agent is unreachable is cancelled once it is reachable",
    [...started, deletedAgo(minute), unreachable],
    { ...cancels, requeueAt: noon + 14 * minute },
  ],
  [
    "has its result recorded, but no record, which would be deleted with it",
    [...started, deletedAgo(minute), run(finished({ outcome: "cancelled" }))],
    { ...fails("Canceled"), steps: [{ kind: "storeResult" }] },
  ],
  [
    "succeeds if its operation has succeeded meanwhile",
    [...started, deletedAgo(minute), run(finished())],
    { ...succeeds, steps: [{ kind: "storeResult" }] },
  ],
  [
    "is cancelled if the agent has not started it",
    [...started, deletedAgo(minute), run(refused("notFound"))],
    endsAs("Canceled"),
  ],
  [
    "has nothing to cancel without its pod",
    [...started, deletedAgo(minute), noPod],
    endsAs("Aborted", "confirmPodDeleted"),
  ],
  [
    "ends after 15 minutes if the agent does not respond",
    [...started, deletedAgo(15 * minute), unreachable],
    endsAs("Unknown"),
  ],
  ["is cancelled after 15 minutes without an operator", [...started, deletedAgo(15 * minute)], cancels],
  [
    "is cancelled until the agent has had time to respond, also after 15 minutes",
    [...started, deletedAgo(15 * minute), run({ state: "starting" })],
    cancels,
  ],
  [
    "on a node that may be lost is stalled, and cancelled once the agent is reachable",
    [...started, deletedAgo(minute), podOverdue(hour), unreachable],
    { ...cancels, conditions: { Progressing: "True/TransientFailure", Stalled: "True/NodeLost" } },
  ],
]);
