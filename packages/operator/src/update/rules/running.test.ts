import { stackNameLabel } from "@pko/api";
import { expect, test } from "bun:test";

import {
  containing,
  endsRecorded,
  hour,
  lacking,
  matching,
  minute,
  passOver,
  progressAt,
  progresses,
  runningStatus,
  started,
  startedStatus,
  table,
  writesNothing,
} from "../testing/plans.ts";
import {
  at,
  condition,
  noon,
  noPod,
  podIs,
  podOverdue,
  refused,
  run,
  running,
  startedIn,
  viewOf,
  withSpec,
  withStatus,
  workspaceIs,
  workspaceReady,
  type ViewTrait,
} from "../testing/views.ts";

const lockHolder = { hostname: "web-workspace-0", pid: 40, startedAt: at(-1_000), lockedAt: at(0) };
const attachesToRun = { steps: [{ kind: "attachRun", runId: "update-uid-1206" }], isWritten: false };
const followsRun = { steps: [{ kind: "followRun" }], isWritten: false };
const ofStack =
  (name: string): ViewTrait =>
  (view) => {
    const metadata = { ...view.update.metadata, labels: { [stackNameLabel]: name } };
    return { ...view, update: { ...view.update, metadata } };
  };
const applying = withSpec({ applyPlan: { updateName: "web-plan", updateUid: "plan-uid", digest: "sha256:plan" } });
const requests = (operation: object) => ({ steps: [{ kind: "followRun", request: { operation } }] });

table("an Update whose pod is recorded", [
  [
    "sends the start request with its uid as the run",
    started,
    {
      steps: [
        { kind: "followRun", pod: { uid: "pod-a" }, request: { runId: "update-uid-1206", operation: { kind: "up" } } },
      ],
      isWritten: false,
    },
  ],
  [
    "passes on the runs that may have left a lock",
    [...started, (view) => ({ ...view, lostRuns: [{ from: at(-2), to: at(-1) }] })],
    { steps: [{ kind: "followRun", request: { lostRuns: [{ from: at(-2), to: at(-1) }] } }] },
  ],
  [
    "passes on what the run belongs to",
    [...started, ofStack("web"), (view) => ({ ...view, traceparent: "00-a-b-01" })],
    {
      steps: [{ kind: "followRun", request: { origin: { update: "web-1", stack: "web", traceparent: "00-a-b-01" } } }],
    },
  ],
  [
    "passes on no trace if traces are off",
    started,
    { steps: [{ kind: "followRun", request: { origin: lacking("traceparent") } }] },
  ],
  ["follows its run also without its Workspace", [...started, workspaceIs({ state: "missing" })], followsRun],
  [
    "follows its run also while the Workspace is being prepared again",
    [...started, workspaceIs({ state: "notReady", message: "x" })],
    followsRun,
  ],
  ["follows its run also while the pod is terminating", [...started, podIs("pod-a", { isDeleting: true })], followsRun],
  ["follows its run even if a user has removed its finalizer", [workspaceReady, startedIn("pod-a")], followsRun],
  [
    "attaches to its run after its progress was reported, and does not start it",
    [...started, withStatus({ progress: progressAt(-1_000, 0) })],
    attachesToRun,
  ],
  ["does the same after its process was recorded", [...started, withStatus({ process: lockHolder })], attachesToRun],
  [
    "attaches to its run without reading the plan that it applies",
    [...started, applying, withStatus({ process: lockHolder })],
    attachesToRun,
  ],
  [
    "waits for the address of its pod before it attaches",
    [...started, withStatus({ process: lockHolder }), podIs("pod-a", { ip: "" })],
    progresses("TransientFailure"),
  ],
  ["waits for the address of its pod", [...started, podIs("pod-a", { ip: "" })], progresses("TransientFailure")],
  [
    "waits for the address of its pod before it reads the plan that it applies",
    [...started, applying, podIs("pod-a", { ip: "" })],
    progresses("TransientFailure"),
  ],
  [
    "attaches to its run, and does not start it, if its spec has become invalid since the start",
    [...started, withSpec({ type: "explode" })],
    attachesToRun,
  ],
]);

table("the start request has", [
  [
    "that a refresh only compares",
    [...started, withSpec({ type: "refresh", previewOnly: true })],
    requests({ kind: "refresh", previewOnly: true }),
  ],
  [
    "all options of an up",
    [
      ...started,
      withSpec({
        refresh: true,
        target: ["urn:a"],
        targetDependents: true,
        replace: ["urn:b"],
        parallel: 4,
        message: "why",
        continueOnError: true,
        expectNoChanges: true,
        expectNoRefreshChanges: true,
      }),
    ],
    requests({
      kind: "up",
      refresh: true,
      targets: ["urn:a"],
      targetDependents: true,
      replace: ["urn:b"],
      parallel: 4,
      message: "why",
      continueOnError: true,
      expectNoChanges: true,
      expectNoRefreshChanges: true,
    }),
  ],
  [
    "the options of a preview",
    [...started, withSpec({ type: "preview", refresh: true })],
    requests({ kind: "preview", refresh: true }),
  ],
  [
    "the options of a refresh",
    [...started, withSpec({ type: "refresh", runProgram: true })],
    requests({ kind: "refresh", runProgram: true }),
  ],
  [
    "a destroy that removes the stack",
    [...started, withSpec({ type: "destroy", remove: true })],
    requests({ kind: "destroy", remove: true }),
  ],
  [
    "a refresh that clears interrupted creates",
    [...started, withSpec({ type: "refresh", clearPendingCreates: true })],
    requests({ kind: "refresh", clearPendingCreates: true }),
  ],
  [
    "the timeouts",
    [...started, withSpec({ timeoutSeconds: 60, silenceTimeoutSeconds: 30 })],
    { steps: [{ kind: "followRun", request: { timeouts: { totalSeconds: 60, silenceSeconds: 30 } } }] },
  ],
  ["no timeouts by default", started, { steps: [{ kind: "followRun", request: lacking("timeouts") }] }],
  ["the Workspace's log level", [...started, (view) => ({ ...view, logLevel: 3 })], requests({ logLevel: 3 })],
]);

table("an Update that runs", [
  [
    "reports nothing new while it is starting",
    [...started, withStatus(startedStatus()), run({ state: "starting" })],
    writesNothing,
  ],
  [
    "reports its first progress",
    [...started, run(running({ created: 2, current: { urn: "urn:x", op: "create" } }))],
    { ...progresses("Progressing"), status: { progress: { created: 2, current: "create urn:x", time: at(0) } } },
  ],
  [
    "does not report progress in its first two seconds",
    [...started, withStatus({ ...startedStatus(), startTime: at(-1_000) }), run(running({ created: 2 }))],
    { ...writesNothing, requeueAt: noon + 1_000 },
  ],
  [
    "reports further progress after two seconds",
    [...started, withStatus({ progress: progressAt(-2_000, 2) }), run(running({ created: 3 }))],
    { isWritten: true, status: { progress: { created: 3 } } },
  ],
  [
    "does not report it earlier, and is requeued for it",
    [...started, withStatus(runningStatus(progressAt(-1_000, 2))), run(running({ created: 3 }))],
    { ...writesNothing, requeueAt: noon + 1_000 },
  ],
  [
    "reports further progress although a clock that was hours ahead recorded the last one",
    [...started, withStatus({ progress: progressAt(hour, 2) }), run(running({ created: 3 }))],
    { isWritten: true, status: { progress: { created: 3 } } },
  ],
  [
    "does not report the same progress again",
    [...started, withStatus(runningStatus(progressAt(-hour, 2))), run(running({ created: 2 }))],
    writesNothing,
  ],
  [
    "reports progress every 5 seconds after 100 seconds",
    [
      ...started,
      withStatus({ ...runningStatus(progressAt(-3_000, 2)), startTime: at(-100_000) }),
      run(running({ created: 3 })),
    ],
    { ...writesNothing, requeueAt: noon + 2_000 },
  ],
  [
    "reports progress every 15 seconds after an hour",
    [
      ...started,
      withStatus({ ...runningStatus(progressAt(-3_000, 2)), startTime: at(-hour) }),
      run(running({ created: 3 })),
    ],
    { ...writesNothing, requeueAt: noon + 12_000 },
  ],
  [
    "reports a percentage if the last operation shows how many resources there are",
    [...started, (view) => ({ ...view, expectedResources: 8 }), run(running({ created: 2, unchanged: 2 }))],
    { status: { progress: { percent: 50 } } },
  ],
  [
    "never reports 100 percent before its end",
    [...started, (view) => ({ ...view, expectedResources: 2 }), run(running({ created: 20 }))],
    { status: { progress: { percent: 99 } } },
  ],
  [
    "reports the permalink as soon as it is known",
    [...started, run(running({ permalink: "https://app/1" }))],
    { status: { permalink: "https://app/1" } },
  ],
  [
    "reports its project",
    [...started, (view) => ({ ...view, project: { name: "shop", runtime: "yaml" } }), run(running())],
    { status: { projectInfo: { name: "shop", runtime: "yaml" } } },
  ],
  [
    "records the process that holds the lock without delay",
    [...started, withStatus({ ...startedStatus(), startTime: at(-1_000) }), run(running({ process: lockHolder }))],
    { isWritten: true, status: { process: lockHolder } },
  ],
  [
    "records the process once",
    [
      ...started,
      withStatus({ ...runningStatus(progressAt(-1_000, 2)), process: lockHolder }),
      run(running({ created: 2, process: lockHolder })),
    ],
    writesNothing,
  ],
  [
    "keeps the recorded process while the agent is unreachable",
    [...started, withStatus({ process: lockHolder }), run({ state: "unreachable", message: "x", sinceMs: noon })],
    { isWritten: true, status: { process: lockHolder } },
  ],
  ["waits for a busy workspace", [...started, run(refused("busy"))], progresses("WorkspaceNotReady")],
  ["waits for an unprepared workspace", [...started, run(refused("unprepared"))], progresses("WorkspaceNotReady")],
  [
    "reports since when the agent is unreachable",
    [...started, run({ state: "unreachable", message: "no route", sinceMs: noon - minute })],
    {
      ...progresses("TransientFailure"),
      status: { conditions: [{ message: matching(/11:59:00Z.*no route/) }, {}, {}, {}] },
    },
  ],
  [
    "keeps the reported progress while the agent is unreachable",
    [
      ...started,
      withStatus({ progress: progressAt(-5_000, 2) }),
      run({ state: "unreachable", message: "x", sinceMs: noon }),
    ],
    { status: { progress: { created: 2 } } },
  ],
]);

const unreachable = run({ state: "unreachable", message: "no route", sinceMs: noon - 10 * minute });
const stalled = withStatus({ conditions: [condition("Stalled", "True", "NodeLost")] });
/** It is not requeued: a change of its run or pod wakes it. */
const isStalled = {
  steps: [],
  requeueAt: undefined,
  conditions: {
    Progressing: "True/TransientFailure",
    Failed: "False/TransientFailure",
    Complete: "False/TransientFailure",
    Stalled: "True/NodeLost",
  },
};
const isNotStalled = (reason: string) => ({ ...progresses(reason), status: { conditions: [{}, {}, {}, {}] } });

table("an Update whose node may be lost", [
  [
    "is stalled with the fix in its message, and an event, once the pod is overdue for long enough",
    [...started, podOverdue(5 * minute), unreachable],
    {
      ...isStalled,
      events: [{ type: "Warning", reason: "NodeLost", message: containing("kubectl delete pod web-workspace-0") }],
      status: { conditions: [{}, {}, {}, {}, { message: containing("out-of-service=nodeshutdown:NoExecute") }] },
    },
  ],
  [
    "is unreachable until then, and requeued for it",
    [...started, podOverdue(4 * minute), unreachable],
    { ...isNotStalled("TransientFailure"), requeueAt: noon + minute },
  ],
  [
    "is not stalled while the agent responds",
    [...started, podOverdue(hour), run(running({ created: 1 }))],
    isNotStalled("Progressing"),
  ],
  [
    "is not stalled before the agent has been contacted",
    [...started, podOverdue(hour), run({ state: "starting" })],
    isNotStalled("Progressing"),
  ],
  ["is not stalled while the pod is not overdue", [...started, unreachable], isNotStalled("TransientFailure")],
  [
    "stays stalled until a new leader has contacted the agent",
    [...started, stalled, podOverdue(hour), run({ state: "starting" })],
    isStalled,
  ],
  [
    "is no longer stalled when the agent responds again",
    [...started, stalled, podOverdue(hour), run(running({ created: 1 }))],
    isNotStalled("Progressing"),
  ],
  [
    "is aborted when its pod is deleted, which the API server must confirm",
    [...started, stalled, noPod, unreachable],
    endsRecorded("Aborted", "confirmPodDeleted"),
  ],
]);

test("the event of a lost node is recorded once", () => {
  const { plan, isWritten, events } = passOver(viewOf(...started, stalled, podOverdue(hour), unreachable));
  expect(plan.outcome.kind).toBe("stalled");
  expect([isWritten, events]).toEqual([true, []]);
});
