import { describe, expect, test } from "bun:test";
import type { UpdateStatus } from "@pko/api";

import { planUpdate, type Plan } from "./plan.ts";
import { statusOf, underWayMessage } from "./status.ts";
import {
  asking,
  at,
  completed,
  condition,
  deletedAgo,
  finished,
  guarded,
  intendedIn,
  noon,
  noPod,
  output,
  podIs,
  podOverdue,
  refused,
  run,
  running,
  viewOf,
  withStatus,
  workspaceIs,
  workspaceReady,
  type ViewTrait,
} from "./testing/views.ts";

const containing = (text: string): unknown => expect.stringContaining(text);
const matching = (pattern: RegExp): unknown => expect.stringMatching(pattern);
const lacking = (field: string): unknown => expect.not.objectContaining({ [field]: expect.anything() as unknown });

type Case = readonly [sentence: string, traits: readonly ViewTrait[], expected: object];

const started = [workspaceReady, guarded, intendedIn("pod-a")];
const minute = 60_000;
const hour = 60 * minute;

/** The conditions that the plan would leave behind. */
function conditionsAfter(plan: Plan, traits: readonly ViewTrait[]): Record<string, string> {
  const status = statusAfter(plan, traits);
  return Object.fromEntries(
    (status?.conditions ?? []).map(({ type, status, reason }) => [type, `${status}/${reason}`]),
  );
}

function statusAfter(plan: Plan, traits: readonly ViewTrait[]): UpdateStatus | undefined {
  const { step } = plan;
  if (step.kind === "report" || step.kind === "cancel" || step.kind === "intend") return step.status;
  if (step.kind !== "end") return undefined;
  const { ending, keep } = step;
  const name = keep.outputs?.metadata.name ?? keep.unreadOutputs;
  const names = { ...(name !== undefined && { outputs: name }) };
  return statusOf(viewOf(...traits), { kind: "ended", ending, kept: { ...names, notes: keep.notes } });
}

function table(title: string, cases: readonly Case[]): void {
  describe(title, () => {
    for (const [sentence, traits, expected] of cases) {
      test(sentence, () => {
        const plan = planUpdate(viewOf(...traits));
        expect({
          ...plan.step,
          lookAt: plan.lookAt,
          leaves: conditionsAfter(plan, traits),
          status: statusAfter(plan, traits),
        }).toMatchObject(expected);
      });
    }
  });
}

const waits = (reason: string) => ({
  kind: "report",
  leaves: { Progressing: `False/${reason}`, Failed: `False/${reason}`, Complete: `False/${reason}` },
});
const progresses = (reason: string) => ({
  kind: "report",
  leaves: { Progressing: `True/${reason}`, Failed: `False/${reason}`, Complete: `False/${reason}` },
});
const fails = (reason: string) => ({
  kind: "end",
  event: { type: "Warning", reason: "UpdateFailed" },
  leaves: { Progressing: "False/Complete", Failed: `True/${reason}`, Complete: `True/${reason}` },
});
const succeeds = {
  kind: "end",
  event: { type: "Normal", reason: "UpdateSucceeded" },
  leaves: { Progressing: "False/Complete", Failed: "False/UpdateSucceeded", Complete: "True/Updated" },
};

table("before it begins", [
  ["it waits for a Workspace that does not exist", [], waits("WorkspaceNotFound")],
  ["it waits while its Workspace is being deleted", [workspaceIs({ state: "deleting" })], waits("WorkspaceNotReady")],
  [
    "it tells why its Workspace is not ready",
    [workspaceIs({ state: "notReady", message: "Installing dependencies." })],
    {
      ...waits("WorkspaceNotReady"),
      status: { conditions: [{ message: containing("Installing") }, {}, {}] },
    },
  ],
  ["it waits while its Workspace is being woken", [workspaceIs({ state: "asleep" })], waits("WorkspaceNotReady")],
  [
    "it waits for a Workspace with other stacks that is being prepared for a new spec, which may have its own",
    [workspaceIs({ state: "otherStack", stacks: ["prod"], isPrepared: false })],
    { ...waits("WorkspaceNotReady"), status: { conditions: [{ message: containing("prod") }, {}, {}] } },
  ],
  [
    "it fails, once the API server confirms it, where its Workspace is prepared and has other stacks only",
    [workspaceIs({ state: "otherStack", stacks: ["prod"], isPrepared: true })],
    {
      ...fails("Failed"),
      proof: "stackUnknown",
      status: { message: containing("spec.stackName: the Workspace web has no stack dev, only prod; make") },
    },
  ],
  [
    "it waits while another Update runs in the Workspace, and names it",
    [workspaceReady, (view) => ({ ...view, before: "web-0" })],
    { ...waits("WorkspaceNotReady"), status: { conditions: [{ message: containing("web-0") }, {}, {}] } },
  ],
  ["it waits while the pod of the address is not there", [workspaceReady, noPod], waits("WorkspaceNotReady")],
  [
    "it rests until its Workspace has read its Secrets once more",
    [workspaceReady, (view) => ({ ...view, isCleared: false })],
    { kind: "none" },
  ],
  [
    "it waits while the pod is on its way out",
    [workspaceReady, podIs("pod-a", { isDeleting: true })],
    waits("WorkspaceNotReady"),
  ],
  [
    "it waits while the pod has another address",
    [workspaceReady, podIs("pod-a", { ip: "10.0.0.9" })],
    waits("WorkspaceNotReady"),
  ],
  [
    "it does not say the same twice",
    [
      withStatus(
        statusOf(viewOf(), { kind: "waiting", reason: "WorkspaceNotFound", message: "There is no Workspace web." }),
      ),
    ],
    { kind: "none" },
  ],
  ["its guard is the first thing written", [workspaceReady], { kind: "guard" }],
  ["no guard is put up while it waits", [workspaceIs({ state: "asleep" })], { kind: "report" }],
  [
    "then the pod is put on record",
    [workspaceReady, guarded],
    { ...progresses("Progressing"), kind: "intend", status: { podUid: "pod-a", startTime: at(0) } },
  ],
  [
    "the record names the pod that is there",
    [workspaceReady, podIs("pod-b"), guarded],
    { kind: "intend", status: { podUid: "pod-b" } },
  ],
]);

table("a spec that makes no sense", [
  ["without an operation it fails", [workspaceReady, asking({ type: "explode" })], fails("Failed")],
  ["without a stack it fails", [workspaceReady, asking({ stackName: "" })], fails("Failed")],
  ["without a Workspace it fails", [asking({ workspaceName: "" })], fails("Failed")],
  [
    "the message names the field",
    [asking({ type: "explode" })],
    {
      ending: { message: containing("spec.type") },
      status: { message: containing("spec.type") },
    },
  ],
  ["an option that could be one for the CLI is refused", [asking({ stackName: "--yes" })], fails("Failed")],
  [
    "it is kept no longer than asked",
    [asking({ type: "explode", ttlAfterCompleted: "1m" }), completed(hour), (view) => ({ ...view, ttlMs: minute })],
    { kind: "expire" },
  ],
]);

const lockHolder = { hostname: "web-workspace-0", pid: 40, startedAt: at(-1_000), lockedAt: at(0) };

table("with the pod on record", [
  [
    "the agent is asked to start it, under the Update's uid",
    started,
    { kind: "follow", pod: { uid: "pod-a" }, request: { runId: "update-uid", operation: { kind: "up" } } },
  ],
  [
    "the agent is told of runs whose locks may be in the way",
    [...started, (view) => ({ ...view, lostRuns: [{ from: at(-2), to: at(-1) }] })],
    { kind: "follow", request: { lostRuns: [{ from: at(-2), to: at(-1) }] } },
  ],
  [
    "it is taken up again whatever has become of the Workspace",
    [...started, workspaceIs({ state: "missing" })],
    { kind: "follow" },
  ],
  [
    "also while the Workspace is being prepared anew",
    [...started, workspaceIs({ state: "notReady", message: "x" })],
    { kind: "follow" },
  ],
  ["also while the pod is on its way out", [...started, podIs("pod-a", { isDeleting: true })], { kind: "follow" }],
  ["also without its guard, which someone took", [workspaceReady, intendedIn("pod-a")], { kind: "follow" }],
  ["it is not started in another pod", [...started, podIs("pod-b")], { ...fails("Aborted"), proof: "podGone" }],
  [
    "it is not started when the pod is gone, which the API server has to confirm",
    [...started, noPod],
    { ...fails("Aborted"), proof: "podGone" },
  ],
  [
    "the message tells that a pod was replaced",
    [...started, podIs("pod-b")],
    { ending: { message: containing("replaced") }, status: { endTime: at(0) } },
  ],
  ["a result that is known counts, though the pod is gone", [...started, noPod, run(finished())], succeeds],
  ["a pod without an address is waited for", [...started, podIs("pod-a", { ip: "" })], progresses("TransientFailure")],
  [
    "an operation that an earlier operator began is not begun again",
    [workspaceReady, withStatus({ startTime: at(-minute) })],
    fails("Aborted"),
  ],
  [
    "nor one of which it has only told that it progresses",
    [workspaceReady, withStatus({ conditions: [condition("Progressing", "True", "Progressing")] })],
    fails("Aborted"),
  ],
]);

table("what the agent is asked", [
  [
    "all options of an up",
    [
      ...started,
      asking({
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
    {
      request: {
        operation: {
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
        },
      },
    },
  ],
  [
    "a preview",
    [...started, asking({ type: "preview", refresh: true })],
    { request: { operation: { kind: "preview", refresh: true } } },
  ],
  [
    "a refresh",
    [...started, asking({ type: "refresh", runProgram: true })],
    { request: { operation: { kind: "refresh", runProgram: true } } },
  ],
  [
    "a destroy that removes the stack",
    [...started, asking({ type: "destroy", remove: true })],
    { request: { operation: { kind: "destroy", remove: true } } },
  ],
  [
    "the Workspace's log level",
    [...started, (view) => ({ ...view, logLevel: 3 })],
    { request: { operation: { logLevel: 3 } } },
  ],
]);

table("while it runs", [
  ["it is starting", [...started, withStatus(begunNow()), run({ state: "starting" })], { kind: "none" }],
  [
    "the first progress is told",
    [...started, run(running({ created: 2, current: { urn: "urn:x", op: "create" } }))],
    { ...progresses("Progressing"), status: { progress: { created: 2, current: "create urn:x", time: at(0) } } },
  ],
  [
    "what has just begun is not told of",
    [...started, withStatus({ ...begunNow(), startTime: at(-1_000) }), run(running({ created: 2 }))],
    { kind: "none", lookAt: noon + 1_000 },
  ],
  [
    "further progress is told after two seconds",
    [...started, withStatus({ progress: progressAt(-2_000, 2) }), run(running({ created: 3 }))],
    { kind: "report", status: { progress: { created: 3 } } },
  ],
  [
    "not before: it looks again when the time has come",
    [...started, withStatus(runningStatus(progressAt(-1_000, 2))), run(running({ created: 3 }))],
    { kind: "none", lookAt: noon + 1_000 },
  ],
  [
    "no news is not told",
    [...started, withStatus(runningStatus(progressAt(-hour, 2))), run(running({ created: 2 }))],
    { kind: "none" },
  ],
  [
    "after an hour progress is told every 15 seconds",
    [
      ...started,
      withStatus({ ...runningStatus(progressAt(-3_000, 2)), startTime: at(-hour) }),
      run(running({ created: 3 })),
    ],
    { kind: "none", lookAt: noon + 12_000 },
  ],
  [
    "the share of the work is told where the last operation tells how much there is",
    [...started, (view) => ({ ...view, expectedResources: 8 }), run(running({ created: 2, unchanged: 2 }))],
    { status: { progress: { percent: 50 } } },
  ],
  [
    "a share is never the whole before the end",
    [...started, (view) => ({ ...view, expectedResources: 2 }), run(running({ created: 20 }))],
    { status: { progress: { percent: 99 } } },
  ],
  [
    "the link is told as soon as it is known",
    [...started, run(running({ permalink: "https://app/1" }))],
    { status: { permalink: "https://app/1" } },
  ],
  [
    "the project is told",
    [...started, (view) => ({ ...view, project: { name: "shop", runtime: "yaml" } }), run(running())],
    { status: { projectInfo: { name: "shop", runtime: "yaml" } } },
  ],
  [
    "the process that holds the lock is recorded at once",
    [...started, withStatus({ ...begunNow(), startTime: at(-1_000) }), run(running({ process: lockHolder }))],
    { kind: "report", status: { process: lockHolder } },
  ],
  [
    "it is recorded once",
    [
      ...started,
      withStatus({ ...runningStatus(progressAt(-1_000, 2)), process: lockHolder }),
      run(running({ created: 2, process: lockHolder })),
    ],
    { kind: "none" },
  ],
  [
    "it stays on record when the agent cannot be reached",
    [...started, withStatus({ process: lockHolder }), run({ state: "unreachable", message: "x", sinceMs: noon })],
    { kind: "report", status: { process: lockHolder } },
  ],
  ["a busy workspace is waited for", [...started, run(refused("busy"))], progresses("WorkspaceNotReady")],
  ["an unprepared workspace is waited for", [...started, run(refused("unprepared"))], progresses("WorkspaceNotReady")],
  [
    "an agent that cannot be reached is told, with since when",
    [...started, run({ state: "unreachable", message: "no route", sinceMs: noon - minute })],
    {
      ...progresses("TransientFailure"),
      status: { conditions: [{ message: matching(/11:59:00Z.*no route/) }, {}, {}] },
    },
  ],
  [
    "progress that was told stays while the agent cannot be reached",
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
const isStalled = {
  leaves: {
    Progressing: "True/TransientFailure",
    Failed: "False/TransientFailure",
    Complete: "False/TransientFailure",
    Stalled: "True/NodeLost",
  },
};

table("when its node may be lost", [
  [
    "it is stalled with the fix in its message, and an event, once the pod is overdue for long enough",
    [...started, podOverdue(5 * minute), unreachable],
    {
      kind: "report",
      ...isStalled,
      event: { type: "Warning", reason: "NodeLost", message: containing("kubectl delete pod web-workspace-0") },
      status: { conditions: [{}, {}, {}, { message: containing("out-of-service=nodeshutdown:NoExecute") }] },
    },
  ],
  [
    "until then it is unreachable, and reconciled when the time has come",
    [...started, podOverdue(4 * minute), unreachable],
    { ...progresses("TransientFailure"), lookAt: noon + minute },
  ],
  [
    "not while the agent answers",
    [...started, podOverdue(hour), run(running({ created: 1 }))],
    progresses("Progressing"),
  ],
  ["not while the pod is as it should be", [...started, unreachable], progresses("TransientFailure")],
  [
    "an operator that has just started does not take it back before it has tried",
    [...started, stalled, podOverdue(hour), run({ state: "starting" })],
    { kind: "report", ...isStalled },
  ],
  [
    "it is no longer stalled when the agent answers again",
    [...started, stalled, podOverdue(hour), run(running({ created: 1 }))],
    { ...progresses("Progressing"), status: { conditions: [{}, {}, {}] } },
  ],
  [
    "one that is being deleted says so too, and is cancelled once the agent can be reached",
    [...started, deletedAgo(minute), podOverdue(hour), unreachable],
    { kind: "cancel", ...isStalled },
  ],
  [
    "when its pod is gone it is interrupted, as the API server has to confirm",
    [...started, stalled, noPod, unreachable],
    { ...fails("Aborted"), proof: "podGone" },
  ],
]);

test("the event of a lost node is sent once", () => {
  const { step } = planUpdate(viewOf(...started, stalled, podOverdue(hour), unreachable));
  expect(step).toMatchObject({ kind: "report" });
  expect("event" in step).toBe(false);
});

table("when it ends", [
  ["success", [...started, run(finished())], succeeds],
  [
    "the end is the agent's",
    [...started, run(finished())],
    { status: { endTime: at(-1_000), startTime: at(-30_000), podUid: "pod-a" } },
  ],
  [
    "the end is never before the beginning",
    [...started, run(finished({ finishedAt: at(-hour) }))],
    { status: { endTime: at(-30_000) } },
  ],
  [
    "changes are told in numbers and in words",
    [...started, run(finished())],
    { status: { changes: { create: 2, same: 1 }, summary: "2 created, 1 unchanged" } },
  ],
  [
    "those of a preview as plans",
    [
      ...started,
      asking({ type: "preview" }),
      run(finished({ operation: "preview", changes: { create: 2, delete: 1 } })),
    ],
    { status: { summary: "2 to create, 1 to delete" } },
  ],
  [
    "the project is the agent's, though this operator has not prepared it",
    [...started, run(finished({ project: { name: "shop", runtime: "yaml" } }))],
    { status: { projectInfo: { name: "shop", runtime: "yaml" } } },
  ],
  [
    "the progress is over",
    [...started, withStatus({ progress: progressAt(0, 2) }), run(finished())],
    { status: lacking("progress") },
  ],
  [
    "failure, in the program's own words",
    [
      ...started,
      run(
        finished({
          outcome: "failed",
          error: { class: "programError", message: "The program failed.", lines: ["error: no such bucket"] },
        }),
      ),
    ],
    {
      ...fails("UpdateFailed"),
      status: { message: "The program failed.\nerror: no such bucket", errorClass: "programError" },
    },
  ],
  [
    "a conflict can be told from other failures",
    [
      ...started,
      run(finished({ outcome: "failed", error: { class: "conflict", message: "Another update runs.", lines: [] } })),
    ],
    { ...fails("UpdateFailed"), status: { errorClass: "conflict" } },
  ],
  ["cancelled", [...started, run(finished({ outcome: "cancelled" }))], fails("Canceled")],
  ["interrupted by a restart of the agent", [...started, run(finished({ outcome: "interrupted" }))], fails("Aborted")],
  ["an operation that the agent refuses for good", [...started, run(refused("other"))], fails("UpdateFailed")],
  [
    "a run of which the agent knows nothing is not begun again",
    [...started, run(refused("notFound"))],
    fails("Aborted"),
  ],
  [
    "outputs go into the Secret, which status names",
    [...started, run(finished({}, [output("url", "http://x"), output("password", "canary", true)]))],
    {
      keep: {
        outputs: {
          immutable: true,
          metadata: { name: "web-1-stack-outputs", annotations: { "pulumi.com/secrets": '["password"]' } },
        },
      },
      status: { outputs: "web-1-stack-outputs" },
    },
  ],
  ["no outputs, no Secret", [...started, run(finished())], { status: lacking("outputs") }],
  [
    "outputs that could not be read are told, and are not taken for none",
    [...started, run({ state: "finished", result: finishedResult(), outputs: [], outputsProblem: "the CLI failed" })],
    {
      ...succeeds,
      keep: { unreadOutputs: "web-1-stack-outputs" },
      status: { message: containing("the CLI failed"), outputs: "web-1-stack-outputs" },
    },
  ],
  [
    "what a preview printed is told",
    [...started, run(finished({ operation: "preview", output: { tail: "+ create", bytes: 8, truncated: false } }))],
    { status: { stdout: { text: "+ create", truncated: false } } },
  ],
  [
    "a long print goes into a Secret",
    [
      ...started,
      run(finished({ operation: "preview", output: { tail: "x".repeat(20_000), bytes: 20_000, truncated: false } })),
    ],
    { keep: { stdout: { metadata: { name: "web-1-stdout" } } }, status: { stdout: { truncated: true } } },
  ],
  [
    "what an up printed is told when it failed",
    [...started, run(finished({ outcome: "failed", output: { tail: "boom", bytes: 4, truncated: false } }))],
    { status: { stdout: { text: "boom" } } },
  ],
  [
    "not when it succeeded",
    [...started, run(finished({ output: { tail: "fine", bytes: 4, truncated: false } }))],
    { status: lacking("stdout") },
  ],
]);

table("when it is deleted", [
  ["before it began, it ends as cancelled", [workspaceReady, deletedAgo(0), guarded], fails("Canceled")],
  ["also when its Workspace is gone", [deletedAgo(0), guarded], fails("Canceled")],
  [
    "it is never started, only cancelled",
    [...started, deletedAgo(0)],
    { kind: "cancel", pod: { uid: "pod-a" }, runId: "update-uid" },
  ],
  [
    "while it runs it is cancelled",
    [...started, deletedAgo(minute), run(running())],
    { kind: "cancel", leaves: { Progressing: "True/Progressing" } },
  ],
  [
    "while the agent is busy with another it is cancelled",
    [...started, deletedAgo(minute), run(refused("busy"))],
    { kind: "cancel" },
  ],
  [
    "while the agent cannot be reached it is cancelled once it can",
    [...started, deletedAgo(minute), run({ state: "unreachable", message: "x", sinceMs: noon })],
    { kind: "cancel", lookAt: noon + 14 * minute },
  ],
  ["its end is recorded", [...started, deletedAgo(minute), run(finished({ outcome: "cancelled" }))], fails("Canceled")],
  ["an operation that succeeded meanwhile did so", [...started, deletedAgo(minute), run(finished())], succeeds],
  [
    "one that had not begun is cancelled",
    [...started, deletedAgo(minute), run(refused("notFound"))],
    fails("Canceled"),
  ],
  ["without its pod there is nothing to cancel", [...started, deletedAgo(minute), noPod], fails("Aborted")],
  ["an agent that stays silent is given up after 15 minutes", [...started, deletedAgo(15 * minute)], fails("Unknown")],
  ["once it has ended it is let go", [...started, completed(0), deletedAgo(minute)], { kind: "release" }],
  ["once it is let go nothing is left to do", [workspaceReady, completed(0), deletedAgo(minute)], { kind: "none" }],
]);

table("after its end", [
  ["its guard is taken down", [guarded, completed(hour)], { kind: "release" }],
  ["it stays for ever unless told otherwise", [completed(hour)], { kind: "none" }],
  [
    "it stays for as long as told",
    [completed(minute), (view) => ({ ...view, ttlMs: hour })],
    { kind: "none", lookAt: noon + hour - minute },
  ],
  [
    "then it goes",
    [completed(hour), (view) => ({ ...view, ttlMs: hour })],
    { kind: "expire", event: { reason: "UpdateExpired" } },
  ],
  [
    "as well where an operator that was replaced told no time of its end",
    [withStatus({ conditions: [condition("Complete", "True", "Failed")] }), (view) => ({ ...view, ttlMs: 30_000 })],
    { kind: "expire", event: { reason: "UpdateExpired" } },
  ],
  ["at once, if so told", [completed(0), (view) => ({ ...view, ttlMs: 0 })], { kind: "expire" }],
  ["not while its guard is up", [guarded, completed(hour), (view) => ({ ...view, ttlMs: 0 })], { kind: "release" }],
  [
    "one that is being deleted is not deleted again",
    [completed(hour), deletedAgo(minute), (view) => ({ ...view, ttlMs: 0 })],
    { kind: "none" },
  ],
  [
    "a run that is still followed changes nothing",
    [workspaceReady, intendedIn("pod-a"), completed(hour), run(running())],
    { kind: "none" },
  ],
  [
    "a new pod changes nothing",
    [workspaceReady, podIs("pod-b"), intendedIn("pod-a"), completed(hour)],
    { kind: "none" },
  ],
]);

test("outputs that are secret appear in the Secret alone", () => {
  const plan = planUpdate(viewOf(...started, run(finished({}, [output("password", "canary", true)]))));
  const { step } = plan;
  if (step.kind !== "end") throw new Error(step.kind);
  const { keep, ...told } = step;
  expect(Buffer.from(keep.outputs?.data?.["password"] ?? "", "base64").toString()).toBe('"canary"');
  expect(JSON.stringify([told, statusAfter(plan, started)])).not.toContain("canary");
});

function progressAt(offsetMs: number, created: number) {
  return { time: at(offsetMs), created, updated: 0, deleted: 0, replaced: 0, unchanged: 0, failed: 0 };
}

/** As it is once the pod is on record. */
function begunNow(): UpdateStatus {
  return statusOf(viewOf(...started), { kind: "progressing", reason: "Progressing", message: underWayMessage });
}

/** As it is after a report of a running operation. */
function runningStatus(progress: UpdateStatus["progress"] & object): UpdateStatus {
  const view = viewOf(...started, withStatus({ progress }));
  return statusOf(view, { kind: "progressing", reason: "Progressing", message: underWayMessage });
}

function finishedResult() {
  const state = finished();
  if (state.state !== "finished") throw new Error(state.state);
  return state.result;
}
