/** The health that Argo CD computes from the statuses that the operator writes. */
import { describe, expect, test } from "bun:test";
import {
  notificationConditions,
  stackConditions,
  updateConditions,
  workspaceConditions,
  type Approval,
  type Condition,
  type ConditionTable,
  type Notification,
  type NotificationSpec,
  type Program,
  type Stack,
  type StackReason,
  type Update,
  type UpdateRecord,
  type Workspace,
  type WorkspaceClass,
} from "@pko/api";
import type { KubeObject } from "@pko/kube";
import type { PrepareFailure } from "@pko/rpc";
import { annotated, anObject, atGeneration, deleting, having } from "@pko/testkit";
import { approvals, programs, updateRecords, workspaceClasses } from "@pko/operator";

import { programStatus } from "../../../packages/operator/src/program/controller.ts";
import type { DriftVerdict } from "../../../packages/operator/src/stack/history/drift.ts";
import type { State as NotificationState } from "../../../packages/operator/src/notification/outcome.ts";
import { notificationStatus } from "../../../packages/operator/src/notification/status.ts";
import { notification, viewOf as notificationView } from "../../../packages/operator/src/notification/testing/views.ts";
import type { Outcome as StackOutcome } from "../../../packages/operator/src/stack/outcome.ts";
import { stackStatus } from "../../../packages/operator/src/stack/status.ts";
import { stackOf, succeeded, viewOf as stackView } from "../../../packages/operator/src/stack/testing/views.ts";
import type { Ending, Outcome as UpdateOutcome } from "../../../packages/operator/src/update/outcome.ts";
import { updateStatus } from "../../../packages/operator/src/update/status.ts";
import { resultOf, startedIn, viewOf as updateView } from "../../../packages/operator/src/update/testing/views.ts";
import type { Outcome as WorkspaceOutcome } from "../../../packages/operator/src/workspace/outcome.ts";
import { workspaceStatus } from "../../../packages/operator/src/workspace/status.ts";
import { view as workspaceView } from "../../../packages/operator/src/workspace/testing/views.ts";
import { actionsOf, changesBy, healthOf } from "./scripts.ts";

interface Assessed extends KubeObject {
  readonly status?: { readonly observedGeneration?: number; readonly conditions?: readonly Condition[] };
}

type Case = readonly [sentence: string, object: Assessed, status: string, message: RegExp];

function cases(title: string, table: readonly Case[], known?: ConditionTable): void {
  describe(title, () => {
    for (const [sentence, object, status, message] of table) {
      test.concurrent(sentence, async () => {
        const health = await healthOf(object);
        expect(health.status).toBe(status);
        expect(health.message).toMatch(message);
      });
    }
    if (!known) return;
    test("every reason is covered", () => {
      const reasons = new Set(Object.values(known).flatMap((byReason) => Object.keys(byReason)));
      for (const [, { status }] of table) for (const { reason } of status?.conditions ?? []) reasons.delete(reason);
      expect([...reasons]).toEqual([]);
    });
  });
}

const stackAfter = (outcome: StackOutcome, setting: Parameters<typeof stackOf>[0] = {}): Stack => ({
  ...stackOf(setting),
  status: stackStatus(stackView(setting), { steps: [], outcome }),
});

const retryAt = Date.UTC(2030, 0, 1, 13);
const upToDate = { kind: "upToDate", message: "The last update succeeded: 3 created." } as const;
const waiting = { message: "Stack base has not succeeded yet.", waitingFor: "Stack base" } as const;
const failure = { kind: "retrying", message: "The up web-1 failed: no such bucket", retryAt } as const;
const conflict = { kind: "conflict", message: "The up web-1 failed, because another runs", retryAt } as const;
const driftVerdicts: readonly DriftVerdict[] = [
  { status: "True", reason: "DriftDetected", message: "" },
  { status: "False", reason: "NoDrift", message: "" },
  { status: "Unknown", reason: "DriftCheckFailed", message: "" },
];
const inState = (request: string) => ({ last: succeeded(), request, status: { observedReconcileRequest: "first" } });

/** Paused, with the health that Argo CD also shows for a suspended CronJob or Deployment. */
const pausedStacks: readonly Case[] = [
  [
    "is Suspended while it waits for an approval, and shows the changes and the command",
    stackAfter({ kind: "awaitingApproval", message: "- delete logs\nkubectl …", waitingFor: "…", expiresAt: retryAt }),
    "Suspended",
    /delete logs\nkubectl/,
  ],
  [
    "is Suspended while it is suspended, and shows how to resume it",
    stackAfter({ kind: "suspended", message: "Set spec.suspend to false.", waitingFor: "spec.suspend" }),
    "Suspended",
    /spec\.suspend to false/,
  ],
  [
    "is Suspended while it waits for an update window, and shows when it opens",
    stackAfter({ kind: "outsideWindow", message: "The next one opens at 22:00.", what: "the up", opensAt: retryAt }),
    "Suspended",
    /opens at 22:00/,
  ],
  [
    "is Progressing when its spec has changed since it was suspended",
    atGeneration(2)(stackAfter({ kind: "suspended", message: "by its spec", waitingFor: "spec.suspend" })),
    "Progressing",
    /not observed the current spec/,
  ],
];

/** After a drift check that found `status`. */
function checkedStack(outcome: StackOutcome, { status, reason }: DriftVerdict): Stack {
  const stack = stackAfter(outcome);
  const drifted = { type: "Drifted", status, reason, message: "1 resource differs", lastTransitionTime: "" };
  return { ...stack, status: { ...stack.status, conditions: [...(stack.status?.conditions ?? []), drifted] } };
}

const checkedStacks = driftVerdicts.flatMap((verdict): Case[] => [
  [
    `stays Healthy with Drifted/${verdict.reason}`,
    checkedStack(upToDate, verdict),
    "Healthy",
    /^The last update succeeded/,
  ],
  [
    `stays Degraded with Drifted/${verdict.reason}`,
    checkedStack({ kind: "stalled", reason: "SpecInvalid", message: "no source" }, verdict),
    "Degraded",
    /^no source$/,
  ],
]);

/** One Stack for all reasons: each case is a process of Argo CD. */
function previewedStack(): Stack {
  const stack = stackAfter(upToDate);
  const previewed = Object.keys(stackConditions.PullRequestsPreviewed).map((reason): Condition => {
    return { type: "PullRequestsPreviewed", status: "False", reason, message: "no", lastTransitionTime: "" };
  });
  return { ...stack, status: { ...stack.status, conditions: [...(stack.status?.conditions ?? []), ...previewed] } };
}

const stalledStacks = Object.keys(stackConditions.Stalled).map((reason): Case => {
  const outcome = { kind: "stalled", reason: reason as StackReason<"Stalled">, message: `why: ${reason}` } as const;
  return [`is Degraded with a message when stalled by ${reason}`, stackAfter(outcome), "Degraded", RegExp(reason)];
});

cases(
  "a Stack",
  [
    ["stays Healthy whatever happens to its pull requests", previewedStack(), "Healthy", /^The last update succeeded/],
    ["is Progressing before the operator has observed it", stackOf({}), "Progressing", /not observed the current spec/],
    [
      "is Progressing without conditions",
      stackOf({ status: { observedGeneration: 1 } }),
      "Progressing",
      /not reported/,
    ],
    [
      "is Progressing while an update runs",
      stackAfter({ kind: "processing", message: "It runs." }),
      "Progressing",
      /runs/,
    ],
    [
      "is Progressing while it waits for a slot",
      stackAfter({ kind: "waitingForSlot", message: "Position 3 of 7 in the queue.", waitingFor: "a free slot" }),
      "Progressing",
      /Position 3 of 7/,
    ],
    [
      "is Progressing while it waits for another Stack, and names it",
      stackAfter({ kind: "prerequisites", ...waiting }),
      "Progressing",
      /Stack base/,
    ],
    [
      "is Progressing while it waits for Stacks that depend on it, and names them",
      stackAfter({ kind: "dependents", message: "Stack app is destroyed first.", waitingFor: "Stack app" }),
      "Progressing",
      /Stack app/,
    ],
    [
      "is Progressing while it retries a failure, and shows the error",
      stackAfter({ ...failure, preview: false }),
      "Progressing",
      /no such bucket\nIt will be retried at 2030/,
    ],
    [
      "is Progressing while it retries a failed preview",
      stackAfter({ ...failure, preview: true }, { spec: { preview: true } }),
      "Progressing",
      /no such bucket/,
    ],
    [
      "is Progressing while it retries a conflict",
      stackAfter(conflict, { spec: { retryOnUpdateConflict: true } }),
      "Progressing",
      /another runs/,
    ],
    ["is Degraded by a conflict that it does not retry", stackAfter(conflict), "Degraded", /another runs/],
    [
      "is Healthy when it is up to date, and shows the last update",
      stackAfter(upToDate),
      "Healthy",
      /^The last .* 3 created/,
    ],
    [
      "is Healthy when its preview succeeded",
      stackAfter({ kind: "upToDate", message: "The last preview succeeded." }, { spec: { preview: true } }),
      "Healthy",
      /preview/,
    ],
    [
      "is Progressing when its spec has changed since it was up to date",
      atGeneration(2)(stackAfter(upToDate)),
      "Progressing",
      /not observed the current spec/,
    ],
    [
      "is Progressing when its spec has changed since it was stalled",
      atGeneration(2)(stackAfter({ kind: "stalled", reason: "SpecInvalid", message: "no source" })),
      "Progressing",
      /not observed the current spec/,
    ],
    [
      "is Progressing when there is a new reconcile request",
      stackOf(inState("second")),
      "Progressing",
      /not observed the reconcile request/,
    ],
    ["is Healthy when the reconcile request was observed", stackOf(inState("first")), "Healthy", /succeeded/],
    ["is Progressing while it is being deleted", deleting()(stackAfter(upToDate)), "Progressing", /deletion/],
    ["is Healthy with a status of the Go operator", stackOfGoOperator(), "Healthy", /processed/],
    ...pausedStacks,
    ...checkedStacks,
    ...stalledStacks,
  ],
  stackConditions,
);

function stackOfGoOperator(): Stack {
  const condition = {
    type: "Ready",
    status: "True",
    reason: "ProcessingCompleted",
    message: "the stack has been processed",
  };
  const lastTransitionTime = "2025-01-01T00:00:00Z";
  const conditions = [{ ...condition, lastTransitionTime, observedGeneration: 0 }] as Condition[];
  return { ...stackOf({}), status: { observedGeneration: 1, conditions, lastUpdate: { state: "succeeded" } } };
}

const workspaceAfter = (outcome: WorkspaceOutcome): Workspace => {
  const view = workspaceView();
  return { ...view.workspace, status: workspaceStatus(view, outcome) };
};
const failedBy = (part: Partial<PrepareFailure>): Workspace =>
  workspaceAfter({
    kind: "failed",
    failure: { phase: "install", reason: "installFailed", message: "npm: 404", lines: ["left-pad is gone"], ...part },
  });
const prepared = workspaceAfter({ kind: "ready", address: "10.0.0.1:50051" });

cases(
  "a Workspace",
  [
    ["is Progressing before the operator has observed it", workspaceView().workspace, "Progressing", /not observed/],
    [
      "is Progressing while its pod starts, and shows what the pod waits for",
      workspaceAfter({ kind: "waiting", message: "no node has room", isStuck: true }),
      "Progressing",
      /no node has room/,
    ],
    [
      "is Progressing while it waits for a slot",
      workspaceAfter({ kind: "waitingForSlot", message: "position 3 of 7 in the queue" }),
      "Progressing",
      /position 3 of 7/,
    ],
    [
      "is Progressing while its pod is replaced",
      workspaceAfter({ kind: "rolling", message: "a new pod" }),
      "Progressing",
      /new/,
    ],
    [
      "is Progressing while a run delays the replacement",
      workspaceAfter({ kind: "waitingForRun", message: "a run continues" }),
      "Progressing",
      /continues/,
    ],
    [
      "is Progressing while it installs dependencies",
      workspaceAfter({ kind: "preparing", phase: "install" }),
      "Progressing",
      /installed/,
    ],
    [
      "is Progressing while it is configured",
      workspaceAfter({ kind: "preparing", phase: "config" }),
      "Progressing",
      /configured/,
    ],
    [
      "is Progressing while it cannot be reached",
      workspaceAfter({ kind: "unreachable", message: "timeout" }),
      "Progressing",
      /timeout/,
    ],
    ["is Progressing while its objects are deleted", workspaceAfter({ kind: "deleting" }), "Progressing", /deleted/],
    [
      "is Degraded if two WorkspaceClasses select its namespace",
      workspaceAfter({ kind: "misconfigured", message: "two classes", reason: "WorkspaceClassConflict" }),
      "Degraded",
      /two classes/,
    ],
    [
      "is Degraded if its pod would exceed a limit of its class",
      workspaceAfter({ kind: "misconfigured", message: "too much memory", reason: "WorkspaceClassLimitExceeded" }),
      "Degraded",
      /memory/,
    ],
    [
      "is Degraded when its spec is rejected",
      workspaceAfter({ kind: "misconfigured", message: "no such volume" }),
      "Degraded",
      /volume/,
    ],
    ["is Degraded when its dependencies cannot be installed", failedBy({}), "Degraded", /npm: 404\nleft-pad is gone/],
    ["is Degraded when its stack cannot be selected", failedBy({ phase: "stack" }), "Degraded", /404/],
    ["is Degraded when its Pulumi is too old", failedBy({ reason: "versionTooLow" }), "Degraded", /404/],
    [
      "is Degraded while an object of another owner has a name that it needs",
      workspaceAfter({ kind: "blocked", message: "StatefulSet team/web-workspace is not this Workspace's." }),
      "Degraded",
      /is not this Workspace's/,
    ],
    [
      "is Degraded when its node may be lost",
      workspaceAfter({ kind: "nodeLost", message: "Pod web-workspace-0 has not responded." }),
      "Degraded",
      /has not responded/,
    ],
    ["is Healthy when it is prepared", prepared, "Healthy", /prepared/],
    ["is Healthy when it is idle", workspaceAfter({ kind: "idle" }), "Healthy", /idle/],
    [
      "is Progressing when its spec has changed",
      atGeneration(3)(prepared),
      "Progressing",
      /not observed the current spec/,
    ],
    ["is Progressing while it is being deleted", deleting()(prepared), "Progressing", /deletion/],
  ],
  workspaceConditions,
);

const updateAfter = (outcome: UpdateOutcome): Update => {
  const view = updateView(startedIn("pod-a"));
  return { ...view.update, status: updateStatus(view, { outcome }) };
};
const endedBy = (ending: Ending): Update => updateAfter({ kind: "ended", ending });
const failedUpdate = endedBy({
  reason: "UpdateFailed",
  message: "The up failed: error: no such bucket",
  result: resultOf({
    outcome: "failed",
    error: { class: "programError", message: "error: no such bucket", lines: ["bucket web-1 is gone"] },
  }),
});
const doneUpdate = endedBy({ reason: "UpdateSucceeded", message: "The up succeeded.", result: resultOf() });
const otherEnds = (["Failed", "Aborted", "Canceled", "TimedOut", "Unknown"] as const).map((reason): Case => {
  const update = endedBy({ reason, message: `It ended as ${reason}.` });
  return [`is Degraded when it ended as ${reason}`, update, "Degraded", RegExp(reason)];
});

cases(
  "an Update",
  [
    ["is Progressing before the operator has observed it", updateView().update, "Progressing", /not observed/],
    [
      "is Progressing while it waits for a slot",
      updateAfter({ kind: "waiting", reason: "WaitingForSlot", message: "Position 3 of 7 in the queue." }),
      "Progressing",
      /Position 3 of 7/,
    ],
    [
      "is Progressing without a Workspace",
      updateAfter({ kind: "waiting", reason: "WorkspaceNotFound", message: "There is no Workspace web." }),
      "Progressing",
      /no Workspace web/,
    ],
    [
      "is Progressing before its Workspace is ready",
      updateAfter({ kind: "waiting", reason: "WorkspaceNotReady", message: "The Workspace is being woken." }),
      "Progressing",
      /woken/,
    ],
    ["is Progressing when it starts", updateAfter({ kind: "started", podUid: "pod-a" }), "Progressing", /is running/],
    [
      "is Progressing while its Workspace cannot be reached",
      updateAfter({ kind: "progressing", reason: "TransientFailure", message: "The workspace does not respond." }),
      "Progressing",
      /does not respond/,
    ],
    ["is Healthy when it succeeded", doneUpdate, "Healthy", /succeeded/],
    ["stays Healthy when its time to live changes afterwards", atGeneration(2)(doneUpdate), "Healthy", /succeeded/],
    [
      "is Degraded when it failed, and shows the error of Pulumi",
      failedUpdate,
      "Degraded",
      /no such bucket\nbucket web-1 is gone/,
    ],
    ...otherEnds,
    [
      "is Degraded while its node may be lost",
      updateAfter({ kind: "stalled", reason: "NodeLost", message: "Pod web-workspace-0 has not responded." }),
      "Degraded",
      /has not responded/,
    ],
    [
      "is Degraded while it exceeds its timeout and is not stopped",
      updateAfter({ kind: "stalled", reason: "NotStopped", message: "Delete pod web-workspace-0." }),
      "Degraded",
      /Delete pod/,
    ],
    ["is Progressing while it is being deleted", deleting()(doneUpdate), "Progressing", /deletion/],
  ],
  updateConditions,
);

const program = anObject<Program>(programs, "web", having<Program>({ program: { resources: {} } }));
const observedProgram = having<Program>({ status: programStatus(program, 0) })(program);

cases("a Program", [
  ["is Progressing before the operator has observed it", program, "Progressing", /not observed/],
  ["is Healthy when the operator has observed it", observedProgram, "Healthy", /ready/],
  ["is Progressing when it has changed since then", atGeneration(2)(observedProgram), "Progressing", /not observed/],
  ["is Progressing while it is being deleted", deleting()(observedProgram), "Progressing", /deletion/],
]);

const notificationIn = (state: NotificationState, spec: Partial<NotificationSpec> = {}): Notification => {
  const plan = { steps: [], outcome: { state, news: { kind: "none" } } } as const;
  return {
    ...notification(spec),
    status: notificationStatus(notificationView({ notification: notification(spec) }), plan),
  };
};

cases(
  "a Notification",
  [
    ["is Progressing before the operator has observed it", notification(), "Progressing", /not observed/],
    ["is Healthy while events are sent", notificationIn({ kind: "delivering" }), "Healthy", /are sent/],
    [
      "is Healthy while its sink fails",
      notificationIn({ kind: "failing", cause: "of the sink" }),
      "Healthy",
      /of the sink/,
    ],
    ["is Suspended while it is suspended", notificationIn({ kind: "suspended" }), "Suspended", /suspended/],
    [
      "is Degraded without its Secret",
      notificationIn({ kind: "stalled", reason: "SecretMissing", message: "Secret chat does not exist." }),
      "Degraded",
      /Secret chat/,
    ],
    [
      "is Degraded with an invalid URL",
      notificationIn({ kind: "stalled", reason: "TargetInvalid", message: "The URL is not valid." }),
      "Degraded",
      /URL/,
    ],
  ],
  notificationConditions,
);

test("an Approval is Healthy, and shows who decided what", async () => {
  const plan = { updateName: "web-1", updateUid: "uid", digest: "sha256:a" };
  const spec = { ...plan, decision: "Reject", decidedBy: "ada" } as const;
  const health = await healthOf(anObject<Approval>(approvals, "web-1", having<Approval>({ spec })));
  expect(health).toEqual({ status: "Healthy", message: "Reject by ada" });
});

test("an UpdateRecord is Healthy, and shows what ran and how it ended", async () => {
  const record = { type: "up", result: "failed" } as UpdateRecord["record"];
  const health = await healthOf(anObject<UpdateRecord>(updateRecords, "web-1", having<UpdateRecord>({ record })));
  expect(health).toEqual({ status: "Healthy", message: "up failed" });
});

test("a WorkspaceClass is Healthy", async () => {
  const health = await healthOf(anObject<WorkspaceClass>(workspaceClasses, "teams", (each) => each));
  expect(health.status).toBe("Healthy");
});

describe("the actions of a Stack", () => {
  const idle = stackAfter(upToDate);
  const busy: Stack = { ...idle, status: { ...idle.status, currentUpdate: { name: "web-1" } } };

  test("a reconcile can be requested at any time with a new value of the annotation", async () => {
    expect(await actionsOf(idle)).toEqual(["reconcile", "suspend"]);
    expect(await actionsOf(stackOf({}))).toEqual(["reconcile", "suspend"]);
    const added = await changesBy("reconcile", idle);
    expect(added.at(-1)).toMatch(/^pulumi\.com\/reconciliation-request: "20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"$/);
  });

  test("other annotations are kept", async () => {
    const changed = await changesBy("reconcile", annotated({ kept: "yes" })(idle));
    expect(changed).toHaveLength(1);
    expect(changed[0]).toStartWith("pulumi.com/reconciliation-request: ");
  });

  test("a running update can be cancelled by its name", async () => {
    expect(await actionsOf(busy)).toEqual(["cancel", "reconcile", "suspend"]);
    expect(await changesBy("cancel", busy)).toContain("pulumi.com/cancellation-request: web-1");
    const refusal = await changesBy("cancel", idle).catch(String);
    expect(refusal).toContain("no update is running");
  });

  test("a Stack can be suspended and resumed, but not approved", async () => {
    const suspended: Stack = { ...idle, spec: { ...idle.spec, suspend: true } };
    expect(await changesBy("suspend", idle)).toContain("suspend: true");
    expect(await actionsOf(suspended)).toEqual(["reconcile", "resume"]);
    expect(await changesBy("resume", suspended)).toContain("suspend: false");
  });
});
