import { describe, expect, test } from "bun:test";
import { approvalKind, type Approval, type ApprovalRequest, type UpdatePlan } from "@pko/api";
import { timestamp } from "@pko/kube";

import { stackEventsFor } from "../events.ts";
import { serializeTrigger, triggerAnnotation } from "../history/trigger.ts";
import { stackStatus } from "../status.ts";
import {
  ago,
  anUpdate,
  aTrigger,
  cases,
  failed,
  messageFor,
  now,
  program,
  succeeded,
  summary,
  viewOf,
  type Setting,
} from "../testing/views.ts";
import type { UpdateFacts } from "../view.ts";
import { planStack } from "./index.ts";

const hour = 3_600_000;
const always = { approval: { required: "Always" } } as const;
const destructive = { approval: { required: "OnDestructiveChanges" } } as const;

const plan = (changes: Partial<UpdatePlan> = {}): UpdatePlan => ({
  digest: "sha256:plan",
  secretNames: ["web-plan-plan-0"],
  changes: true,
  destructive: true,
  unknownInputs: 0,
  summary: "- delete bucket\n+ create queue",
  ...changes,
});

const planUpdate = (changes: Partial<UpdateFacts> = {}): UpdateFacts =>
  anUpdate({
    name: "web-plan",
    uid: "uid-of-plan",
    type: "preview",
    state: "succeeded",
    isPlan: true,
    plan: plan(),
    hasFinalizer: false,
    finalizers: [],
    endedAt: now - hour,
    ...changes,
  });

const finished = { hasFinalizer: true, finalizers: ["finalizer.stack.pulumi.com"] } as const;

const request = (changes: Partial<ApprovalRequest> = {}): ApprovalRequest => ({
  state: "Pending",
  updateName: "web-plan",
  updateUid: "uid-of-plan",
  digest: "sha256:plan",
  trigger: serializeTrigger(aTrigger()),
  summary: "- delete bucket",
  expiresAt: timestamp(now + 23 * hour),
  ...changes,
});

const approval = (changes: Partial<Approval["spec"]> = {}, createdAgo = 60): Approval => ({
  apiVersion: approvalKind.apiVersion,
  kind: approvalKind.kind,
  metadata: { name: `approval-${createdAgo}`, namespace: "default", creationTimestamp: ago(createdAgo) },
  spec: {
    updateName: "web-plan",
    updateUid: "uid-of-plan",
    digest: "sha256:plan",
    decision: "Approve",
    decidedBy: "alice",
    ...changes,
  },
});
const rejection = (createdAgo = 60): Approval => approval({ decision: "Reject", reason: "not today" }, createdAgo);

/** A plan that waits for an approval. */
const pending: Setting = { spec: always, updates: [planUpdate()], status: { approval: request() } };
const approved: Setting = { ...pending, approvals: [approval()] };
const creating = (what: string): string => `create ${what}: StackProcessing`;
const terminating = { kind: "namespaceTerminating" } as const;
const unavailable = { kind: "unavailable", problem: "unreachable", message: "no" } as never;

/** The Update that is created, if any. */
function created(setting: Setting) {
  const step = planStack(viewOf(setting)).steps.find(({ kind }) => kind === "createUpdate");
  return step?.kind === "createUpdate" ? step.update : undefined;
}

function statusAfter(setting: Setting) {
  const view = viewOf(setting);
  return stackStatus(view, planStack(view));
}

function eventsAfter(setting: Setting): string[] {
  const view = viewOf(setting);
  return stackEventsFor(view, planStack(view)).map(({ reason }) => reason);
}

describe("a Stack whose WorkspaceClass requires approvals", () => {
  const requiring = (required: "OnDestructiveChanges" | "Always"): Setting => ({
    workspaceClass: {
      kind: "one",
      name: "teams",
      uid: "c1",
      spec: { namespaceSelector: {}, approval: { required } },
    },
  });
  const recorded = (setting: Setting) => statusAfter({ updates: [planUpdate(finished)], ...setting }).approval?.state;
  const harmless = [planUpdate({ ...finished, plan: plan({ destructive: false }) })];

  test("plans first, whatever the Stack itself requires", () => {
    expect(created(requiring("OnDestructiveChanges"))?.spec?.savePlan).toBe(true);
    expect(created({ ...requiring("Always"), spec: { approval: { required: "Never" } } })?.spec?.savePlan).toBe(true);
    expect(created({})?.spec?.savePlan).toBeUndefined();
  });

  test("waits for the stricter of both requirements", () => {
    const own = { approval: { required: "Always" } } as const;
    expect(recorded(requiring("OnDestructiveChanges"))).toBe("Pending");
    expect(recorded({ ...requiring("OnDestructiveChanges"), updates: harmless })).toBe("NotRequired");
    expect(recorded({ ...requiring("Always"), updates: harmless })).toBe("Pending");
    expect(recorded({ ...requiring("OnDestructiveChanges"), spec: own, updates: harmless })).toBe("Pending");
  });

  test("names the class in its message, unless the Stack requires the same itself", () => {
    const because = "because the WorkspaceClass teams requires it";
    expect(messageFor({ ...pending, spec: {}, ...requiring("Always") })).toContain(because);
    expect(messageFor({ ...pending, ...requiring("Always") })).not.toContain(because);
    expect(messageFor({ ...pending, ...requiring("OnDestructiveChanges") })).not.toContain(because);
  });

  test("is updated without one as soon as the class requires none, though a plan still waits for an approval", () => {
    expect(summary({ ...pending, spec: {} })).toBe(creating("up for first"));
  });

  test("is not updated because the class begins to require them", () => {
    expect(created({ ...requiring("Always"), last: succeeded() })).toBeUndefined();
  });
});

describe("a drift check of a Stack that requires approvals", () => {
  const last = succeeded({ lastResyncTime: ago(3660) });
  const spec = { ...always, driftDetection: { intervalSeconds: 3600, action: "Correct" as const } };

  test("needs no plan, because it changes nothing", () => {
    const check = created({ spec, last })?.spec;
    expect(check).toMatchObject({ type: "refresh", previewOnly: true });
    expect(check).not.toHaveProperty("savePlan");
  });

  test("keeps the decision about the last plan in the status", () => {
    const applied = request({ state: "Approved", appliedBy: "web-last", decidedBy: "alice" });
    expect(statusAfter({ spec, last, status: { approval: applied } }).approval).toEqual(applied);
  });
});

describe("an approved plan whose Update was withdrawn before it started", () => {
  const last = failed({ name: "web-apply", failure: "withdrawn", failures: 0, lastResyncTime: ago(60) });
  const applied = request({ state: "Approved", appliedBy: "web-apply" });
  const withdrawn = anUpdate({ name: "web-apply", appliesPlan: "web-plan", state: "failed", failure: "withdrawn" });
  const setting: Setting = { ...approved, last, status: { approval: applied } };

  test("is applied by the next Update, without another approval", () => {
    const update = created({ ...setting, updates: [planUpdate(), { ...withdrawn, hasFinalizer: false }] });
    expect(update?.spec?.applyPlan).toMatchObject({ updateName: "web-plan", digest: "sha256:plan" });
    expect(update?.metadata.name).not.toBe("web-apply");
  });

  test("is not applied again if its Update has started", () => {
    const started = { ...setting, last: { ...last, failure: "programError" } };
    expect(created(started)?.spec).toMatchObject({ type: "preview", savePlan: true });
  });
});

describe("an update that needs an approval", () => {
  test("is planned with the options of the update", () => {
    const spec = { ...always, refresh: true, targets: ["urn:a"] };
    expect(created({ spec })?.spec).toMatchObject({
      type: "preview",
      savePlan: true,
      refresh: true,
      target: ["urn:a"],
    });
  });

  test("is planned even if only destructive changes need an approval: nobody knows before", () => {
    expect(created({ spec: destructive })?.spec).toMatchObject({ type: "preview", savePlan: true });
  });

  test("is planned by a preview of the destroy if the Stack is deleted", () => {
    const setting: Setting = {
      deleting: true,
      spec: { ...always, destroyOnFinalize: true },
      last: succeeded(),
      status: { deployed: true },
    };
    expect(created(setting)?.spec).toMatchObject({ type: "destroy", previewOnly: true, savePlan: true });
  });

  test("has a plan that is kept until it expires", () => {
    const ttl = (expiresAfterSeconds: number) =>
      created({
        spec: {
          approval: { required: "Always", expiresAfterSeconds },
          updateTemplate: { spec: { ttlAfterCompleted: "2h" } },
        },
      })?.spec?.ttlAfterCompleted;
    expect([ttl(60), ttl(604_800)]).toEqual(["7200s", "604800s"]);
  });

  test("applies exactly the plan that was approved", () => {
    const update = created(approved);
    expect(update?.spec).toMatchObject({ type: "up" });
    expect(update?.spec).not.toHaveProperty("savePlan");
    expect(update?.spec?.applyPlan).toEqual({
      updateName: "web-plan",
      updateUid: "uid-of-plan",
      digest: "sha256:plan",
      approvalName: "approval-60",
    });
  });

  test("has Updates with different names for the plan, the next plan and the plan's application", () => {
    const expired = { ...pending, status: { approval: request({ expiresAt: ago(1) }) } };
    const names = [{ spec: always }, expired, approved, {}].map((setting) => created(setting)?.metadata.name);
    expect(new Set(names).size).toBe(4);
    expect(created(expired)?.metadata.name).toBe(created(expired)?.metadata.name);
  });

  test("is not needed for a Stack that only previews", () => {
    expect(created({ spec: { ...always, preview: true } })?.spec).not.toHaveProperty("savePlan");
  });
});

cases("an update that needs an approval", [
  ["waits for the approval", pending, "none: AwaitingApproval"],
  ["is applied once it is approved", approved, creating("up for first")],
  ["is stalled once it is rejected", { ...pending, approvals: [rejection()] }, "none: ApprovalRejected"],
  [
    "is stalled if it was approved, and rejected before it started",
    { ...pending, approvals: [approval(), rejection(30)] },
    "none: ApprovalRejected",
  ],
  [
    "stays rejected, though a later Approval approves it",
    { ...pending, status: { approval: request({ state: "Rejected" }) }, approvals: [approval()] },
    "none: ApprovalRejected",
  ],
  [
    "stays rejected after the plan has expired and was deleted",
    { ...pending, updates: [], status: { approval: request({ state: "Rejected", expiresAt: ago(1) }) } },
    "none: ApprovalRejected",
  ],
  [
    "is planned again if something changes after a rejection",
    { ...pending, source: program(2), status: { approval: request({ state: "Rejected" }) } },
    creating("up for first"),
  ],
  [
    "waits though another plan was approved",
    { ...pending, approvals: [approval({ digest: "sha256:other" }), approval({ updateUid: "other" })] },
    "none: AwaitingApproval",
  ],
  [
    "waits though an Approval was created after the plan had expired",
    { ...pending, status: { approval: request({ expiresAt: ago(60) }) }, approvals: [approval({}, 30)] },
    creating("up for first"),
  ],
  [
    "is not applied if the Approval was deleted before",
    { ...pending, status: { approval: request({ state: "Approved", approvalName: "gone" }) } },
    "none: AwaitingApproval",
  ],
  [
    "is applied without an approval if none is required",
    { ...pending, status: { approval: request({ state: "NotRequired" }) } },
    creating("up for first"),
  ],
  [
    "waits for its prerequisites again before the plan is applied",
    { ...approved, workspace: "preparing" },
    "none: StackProcessing",
  ],
]);

cases("a request for what the last update was for", [
  ["is superseded if that update succeeded", { ...pending, last: succeeded() }, "recordPlan: Ready"],
  ["is kept for the retry if that update failed", { ...pending, last: failed() }, "none: RetryingAfterFailure"],
]);

/** A request for revision 2, while revision 1 is what the last update was for. */
const other = request({ trigger: serializeTrigger(aTrigger({ revision: "2" })) });

describe("a request for a revision to which the source no longer points", () => {
  const returned: Setting = { ...pending, last: succeeded(), status: { approval: other } };

  cases("while the source is at what is deployed", [
    ["is superseded", returned, "recordPlan: Ready"],
    ["is superseded, even if it was approved", { ...returned, approvals: [approval()] }, "recordPlan: Ready"],
    [
      "is superseded before drift is checked",
      { ...returned, spec: { ...always, driftDetection: { intervalSeconds: 60 } } },
      "recordPlan: Ready",
    ],
    [
      "is superseded, although the last update failed and is retried later",
      { ...returned, last: failed() },
      "recordPlan: StackProcessing",
    ],
    [
      "stays superseded",
      { ...returned, status: { approval: { ...other, state: "Superseded" } }, approvals: [approval()] },
      "none: Ready",
    ],
    ["stays rejected", { ...returned, status: { approval: { ...other, state: "Rejected" } } }, "none: Ready"],
    ["stays while nobody knows where the source is", { ...returned, source: unavailable }, "none: SourceUnavailable"],
    [
      "is planned again when the source returns to it",
      { ...returned, source: program(2), status: { approval: { ...other, state: "Superseded" } } },
      creating("up for revision"),
    ],
  ]);

  test("shows in status and events that nothing is pending", () => {
    const { approval: shown, waiting, next } = statusAfter(returned);
    expect(shown).toEqual({ ...other, state: "Superseded" });
    expect([waiting, next]).toEqual([undefined, undefined]);
    expect(eventsAfter(returned)).toEqual(["StackApprovalSuperseded"]);
    expect(eventsAfter({ ...returned, status: { approval: { ...other, state: "Superseded" } } })).toEqual([]);
  });

  test("has another Update when it is planned again", () => {
    const again = { ...returned, source: program(2), status: { approval: { ...other, state: "Superseded" as const } } };
    expect(created(again)?.metadata.name).not.toBe(created({ ...again, status: {} })?.metadata.name);
  });

  test("is not superseded while an approved plan waits for the retry of a withdrawn Update", () => {
    const last = failed({ name: "web-apply", failure: "withdrawn", failures: 0 });
    const status = { approval: request({ state: "Approved", appliedBy: "web-apply" }) };
    expect(statusAfter({ ...approved, last, status }).approval?.state).toBe("Approved");
  });
});

const closed = { ...always, updateWindows: [{ schedule: "0 3 * * *", durationSeconds: 3600 }] };

cases("outside of its update windows, an update that needs an approval", [
  ["is not planned", { spec: closed }, "none: OutsideUpdateWindow"],
  ["can be approved", { ...pending, spec: closed }, "none: AwaitingApproval"],
  ["is not applied before a window opens", { ...approved, spec: closed }, "none: OutsideUpdateWindow"],
]);

describe("a plan", () => {
  const fails = (setting: Setting): boolean => created(setting)?.spec?.savePlan === true;
  const table: readonly (readonly [string, Setting])[] = [
    ["has expired without a decision", { ...pending, status: { approval: request({ expiresAt: ago(0) }) } }],
    ["has expired before it was applied", { ...approved, status: { approval: request({ expiresAt: ago(0) }) } }],
    ["is for another revision", { ...approved, source: program(2) }],
    ["is for another spec", { ...approved, generation: 2 }],
    ["is for another request", { ...approved, request: "now" }],
    [
      "was applied by an update that failed",
      {
        ...approved,
        last: failed({ lastResyncTime: ago(20) }),
        status: { approval: request({ appliedBy: "web-last" }) },
      },
    ],
    ["was deleted with its Update", { ...approved, updates: [] }],
    ["is being deleted with its Update", { ...approved, updates: [planUpdate({ deleting: true })] }],
    ["has another digest now", { ...approved, updates: [planUpdate({ plan: plan({ digest: "other" }) })] }],
  ];
  for (const [sentence, setting] of table) {
    test(`is made again if it ${sentence}`, () => expect(fails(setting)).toBe(true));
  }
});

describe("a plan that waits for an approval, after the spec has changed,", () => {
  const planned = created({ spec: always })?.metadata.annotations?.[triggerAnnotation] ?? "";
  const after = (spec: Setting["spec"], trigger = planned): Setting => ({
    ...pending,
    spec: { ...always, ...spec },
    generation: 2,
    status: { approval: request({ trigger }) },
  });

  const unrelated: Readonly<Record<string, Setting["spec"]>> = {
    maxFailures: { maxFailures: 3 },
    protect: { protect: true },
    "suspend, which is false again": { suspend: false },
    expiresAfterSeconds: { approval: { required: "Always", expiresAfterSeconds: 60 } },
    updateWindows: { updateWindows: [{ schedule: "0 12 * * *", durationSeconds: 3600 }] },
    driftDetection: { driftDetection: { intervalSeconds: 3600 } },
    updateTimeoutSeconds: { updateTimeoutSeconds: 600 },
    resyncFrequencySeconds: { resyncFrequencySeconds: 600, continueResyncOnCommitMatch: true },
    destroyOnFinalize: { destroyOnFinalize: true },
  };
  for (const [field, spec] of Object.entries(unrelated)) {
    test(`is kept if that was ${field}`, () => expect(summary(after(spec))).toBe("none: AwaitingApproval"));
  }

  const related: Readonly<Record<string, Setting["spec"]>> = {
    config: { config: { size: "2" } },
    envRefs: { envRefs: { A: { type: "Literal", literal: { value: "b" } } } },
    targets: { targets: ["urn:a"] },
    refresh: { refresh: true },
    "approval.required": destructive,
    stack: { stack: "prod" },
    serviceAccountName: { serviceAccountName: "other" },
    workspaceTemplate: { workspaceTemplate: { spec: { image: "other" } } },
  };
  for (const [field, spec] of Object.entries(related)) {
    test(`is made again if that was ${field}`, () => expect(summary(after(spec))).toBe(creating("up for first")));
  }

  test("is applied for the new spec, if it was approved", () => {
    const update = created({ ...after({ maxFailures: 3 }), approvals: [approval()] });
    expect(update?.spec?.applyPlan?.digest).toBe("sha256:plan");
    expect(JSON.parse(update?.metadata.annotations?.[triggerAnnotation] ?? "")).toMatchObject({ generation: 2 });
  });

  test("stays approved while it waits for the retry of a withdrawn Update", () => {
    const last = failed({ name: "web-apply", failure: "withdrawn", failures: 0, generation: 2 });
    const status = { approval: request({ trigger: planned, state: "Approved", appliedBy: "web-apply" }) };
    const setting: Setting = { ...after({ maxFailures: 3 }), approvals: [approval()], last, status };
    expect(statusAfter(setting).approval?.state).toBe("Approved");
  });

  test("stays rejected", () => {
    const rejected = request({ trigger: planned, state: "Rejected" });
    expect(summary({ ...after({ maxFailures: 3 }), status: { approval: rejected } })).toBe("none: ApprovalRejected");
  });

  test("is made again if drift is no longer to be corrected, because the correction refreshes", () => {
    const spec = { ...always, driftDetection: { intervalSeconds: 3600, action: "Correct" as const } };
    const drift = { checkedAt: ago(60), resources: [{ urn: "urn:a", operation: "update" }] } as never;
    const last = succeeded({ lastResyncTime: ago(3600) });
    const trigger = created({ spec, last, drift })?.metadata.annotations?.[triggerAnnotation] ?? "";
    const changed = after({ driftDetection: { intervalSeconds: 3600, action: "Report" } }, trigger);
    expect(summary({ ...changed, last, drift })).toBe(creating("up for generation"));
  });

  test("is kept if a new revision of the source has the same content", () => {
    const at = (revision: string): NonNullable<Setting["source"]> => ({
      ...program(1),
      revision,
      digest: "sha256:same",
    });
    const trigger = created({ spec: always, source: at("v1") })?.metadata.annotations?.[triggerAnnotation] ?? "";
    expect(summary({ ...after({}, trigger), source: at("v2") })).toBe("none: AwaitingApproval");
    expect(summary({ ...after({}, trigger), source: program(2) })).toBe(creating("up for first"));
  });
});

cases("a plan that was made", [
  [
    "is recorded, and waits for an approval",
    { spec: always, updates: [planUpdate(finished)] },
    "recordPlan: AwaitingApproval",
  ],
  [
    "needs no approval if it changes nothing",
    { spec: always, updates: [planUpdate({ ...finished, plan: plan({ changes: false, destructive: false }) })] },
    "recordPlan: StackProcessing",
  ],
  [
    "needs no approval if it is not destructive, and only that needs one",
    { spec: destructive, updates: [planUpdate({ ...finished, plan: plan({ destructive: false }) })] },
    "recordPlan: StackProcessing",
  ],
  [
    "needs an approval if it is destructive",
    { spec: destructive, updates: [planUpdate(finished)] },
    "recordPlan: AwaitingApproval",
  ],
  [
    "needs no approval if the spec no longer requires one",
    { updates: [planUpdate(finished)] },
    "recordPlan: StackProcessing",
  ],
  [
    "is kept by its finalizer until it is recorded",
    { ...pending, updates: [planUpdate(finished)] },
    "removeUpdateFinalizers, none: AwaitingApproval",
  ],
  [
    "failed, and is made again later",
    { spec: always, updates: [planUpdate({ ...finished, state: "failed", message: "no", endedAt: now })] },
    "recordResult: RetryingAfterFailure",
  ],
  [
    "is not the last update of a Stack that lost its status",
    { spec: always, updates: [planUpdate()] },
    creating("up for first"),
  ],
]);

describe("a destroy", () => {
  const destroy = aTrigger({ type: "destroy" });
  const deleted = { deleting: true, last: succeeded(), source: program(1) } as const;
  const spec = { ...destructive, destroyOnFinalize: true };
  const made = { type: "destroy", trigger: destroy, plan: plan({ destructive: false }) } as const;

  test("needs an approval, as it is destructive", () => {
    const setting: Setting = {
      ...deleted,
      spec,
      status: { deployed: true },
      updates: [planUpdate({ ...finished, ...made })],
    };
    expect(statusAfter(setting).approval?.state).toBe("Pending");
  });

  test("applies the approved plan", () => {
    const status = { deployed: true, approval: request({ trigger: serializeTrigger(destroy) }) };
    const setting: Setting = { ...deleted, spec, status, updates: [planUpdate(made)], approvals: [approval()] };
    expect(created(setting)?.spec).toMatchObject({ type: "destroy", applyPlan: { digest: "sha256:plan" } });
  });

  test("that could not be planned has destroyed nothing", () => {
    const update = planUpdate({ ...finished, ...made, state: "failed", message: "no", endedAt: now });
    const { lastUpdate, deployed } = statusAfter({ ...deleted, spec, updates: [update] });
    expect(lastUpdate).toMatchObject({ type: "destroy", state: "failed", failures: 1 });
    expect(deployed).toBeUndefined();
  });

  test("is not needed for a Stack that has only made plans", () => {
    const status = statusAfter({ spec: { ...spec }, updates: [planUpdate(finished)] });
    expect(status.deployed).toBe(false);
    const setting: Setting = { deleting: true, spec, status, updates: [planUpdate()] };
    expect(planStack(viewOf(setting)).steps).toMatchObject([{ kind: "removeFinalizer", nothingDeployed: true }]);
  });
});

cases("the admission policy for Approvals", [
  [
    "is missing: nothing starts",
    { spec: always, approvalPolicy: { kind: "missing", policy: "approvals" } },
    "none: ApprovalPolicyMissing",
  ],
  [
    "is missing, which is reported even if no update is due",
    { spec: always, last: succeeded(), approvalPolicy: { kind: "missing", policy: "approvals" } },
    "none: ApprovalPolicyMissing",
  ],
  [
    "for Stacks is missing: nothing starts",
    { spec: always, approvalPolicy: { kind: "missing", policy: "safeguards" } },
    "none: ApprovalPolicyMissing",
  ],
  [
    "cannot be checked",
    { spec: always, approvalPolicy: { kind: "unverified", why: "forbidden" } },
    "none: ApprovalPolicyMissing",
  ],
  [
    "cannot be checked, because the namespace is being deleted",
    { spec: { ...always, destroyOnFinalize: true }, deleting: true, last: succeeded(), approvalPolicy: terminating },
    "none: NamespaceTerminating",
  ],
  ["has not been checked yet", { spec: always, approvalPolicy: { kind: "unknown" } }, "none: unchanged"],
  [
    "has not been checked yet, and no update is due",
    { spec: always, last: succeeded(), approvalPolicy: { kind: "unknown" } },
    "none: Ready",
  ],
  [
    "does not matter without approvals",
    { approvalPolicy: { kind: "missing", policy: "approvals" } },
    creating("up for first"),
  ],
  [
    "does not matter for the deletion of a Stack that destroys nothing",
    { spec: always, deleting: true, approvalPolicy: { kind: "missing", policy: "approvals" } },
    "removeFinalizer: unchanged",
  ],
]);

describe("the status", () => {
  test("shows the request", () => {
    const { approval, waiting, next, lastUpdate } = statusAfter({ spec: always, updates: [planUpdate(finished)] });
    expect(approval).toEqual({
      ...request({ summary: "- delete bucket\n+ create queue" }),
      expiresAt: timestamp(now + 23 * hour),
    });
    expect(waiting?.for).toBe("an Approval of the plan of Update web-plan");
    expect(next).toEqual({ what: "a new plan, when this one expires", time: timestamp(now + 23 * hour) });
    expect(lastUpdate).toBeUndefined();
  });

  test("shows who decided, when and why, and which Update applies the plan", () => {
    const setting = { ...pending, approvals: [approval({ reason: "reviewed" })] };
    const { approval: shown } = statusAfter(setting);
    expect(shown).toMatchObject({ state: "Approved", decidedBy: "alice", decidedAt: ago(60), reason: "reviewed" });
    expect(shown?.appliedBy).toBe(created(setting)?.metadata.name ?? "");
  });

  test("keeps the decision after the plan was applied, though the Approval was deleted", () => {
    const decided = request({ state: "Approved", decidedBy: "alice", appliedBy: "web-last" });
    expect(statusAfter({ spec: always, last: succeeded(), status: { approval: decided } }).approval).toEqual(decided);
  });

  test("shows that a plan is being applied, even if the pass that created the Update was interrupted", () => {
    const applying = anUpdate({ name: "web-apply", appliesPlan: "web-plan", startedAt: now });
    const { approval: shown } = statusAfter({ ...approved, updates: [planUpdate(), applying] });
    expect(shown).toMatchObject({ state: "Approved", appliedBy: "web-apply" });
  });

  test("shows no request while the next plan is made", () => {
    expect(statusAfter({ ...pending, source: program(2) }).approval).toBeUndefined();
    const next = anUpdate({ name: "web-next", type: "preview", isPlan: true, startedAt: now });
    expect(statusAfter({ ...pending, updates: [planUpdate(), next] }).approval).toBeUndefined();
  });

  test("shows no request if approvals are no longer required", () => {
    expect(statusAfter({ ...pending, spec: {}, generation: 2 }).approval).toBeUndefined();
  });

  test("counts a plan that could not be made as a failure of the update", () => {
    const update = planUpdate({ ...finished, state: "failed", message: "no such bucket", endedAt: now });
    const { lastUpdate, deployed } = statusAfter({ spec: always, updates: [update] });
    expect(lastUpdate).toMatchObject({ name: "web-plan", type: "up", state: "failed", failures: 1 });
    expect(deployed).toBe(false);
  });
});

describe("the events", () => {
  const trigger = aTrigger({ revision: "2" });
  const nextPlan = anUpdate({ name: "web-next", type: "preview", isPlan: true, trigger, startedAt: now });
  const table: readonly (readonly [string, Setting, readonly string[]])[] = [
    ["request an approval", { spec: always, updates: [planUpdate(finished)] }, ["StackAwaitingApproval"]],
    [
      "do not request an approval that is not required",
      { spec: destructive, updates: [planUpdate({ ...finished, plan: plan({ destructive: false }) })] },
      [],
    ],
    ["say that the plan was approved", approved, ["StackApproved", "StackUpdateDetected"]],
    ["say that the plan was rejected", { ...pending, approvals: [rejection()] }, ["StackApprovalRejected"]],
    [
      "say that the plan expired",
      { ...pending, status: { approval: request({ expiresAt: ago(1) }) } },
      ["StackApprovalExpired", "StackUpdateDetected"],
    ],
    [
      "say that the plan was superseded",
      { ...pending, source: program(2) },
      ["StackApprovalSuperseded", "StackUpdateDetected"],
    ],
    [
      "say that the plan was superseded if the pass that created the next one did not write the status",
      { ...pending, source: program(2), updates: [planUpdate(), nextPlan] },
      ["StackApprovalSuperseded"],
    ],
    [
      "say that the plan was superseded by a spec that requires no approval",
      { ...pending, spec: {}, generation: 2 },
      ["StackApprovalSuperseded", "StackUpdateDetected"],
    ],
    [
      "do not mention an applied plan again",
      { ...pending, source: program(2), status: { approval: request({ state: "Approved", appliedBy: "web-last" }) } },
      ["StackUpdateDetected"],
    ],
    [
      "report a missing policy",
      { spec: always, approvalPolicy: { kind: "missing", policy: "approvals" } },
      ["StackApprovalPolicyMissing"],
    ],
    ["report nothing new while the Stack waits", pending, []],
  ];
  for (const [sentence, setting, expected] of table) {
    test(sentence, () => expect(eventsAfter(setting)).toEqual([...expected]));
  }
});

describe("the message", () => {
  test("calls an Update that makes a plan a preview", () => {
    expect(messageFor({ spec: always })).toStartWith("The preview web-");
    expect(messageFor({})).toStartWith("The up web-");
  });

  test("of a Stack that waits shows the changes, what is unknown, and the commands to approve them", () => {
    const setting: Setting = { ...pending, status: { approval: request({ unknownInputs: 2 }) } };
    const message = messageFor(setting);
    expect(message).toStartWith(
      `The changes must be approved before ${timestamp(now + 23 * hour)}:\n- delete bucket\n`,
    );
    expect(message).toContain("2 input values are known only while the plan is applied.");
    expect(message).toContain("kubectl pulumi approve web --namespace default");
    expect(message).toContain("kubectl create -f - <<EOF\n");
    const manifest = JSON.parse(/\n(\{.*\})\n/.exec(message)?.[1] ?? "") as Approval;
    expect(manifest).toMatchObject({
      kind: "Approval",
      spec: { updateName: "web-plan", updateUid: "uid-of-plan", digest: "sha256:plan", decision: "Approve" },
    });
  });

  test("of a missing policy shows which one, and what is possible without it", () => {
    const missing = (policy: "approvals" | "safeguards") =>
      messageFor({ spec: always, approvalPolicy: { kind: "missing", policy } });
    expect(missing("approvals")).toContain("in the name of others");
    expect(missing("safeguards")).toContain("stack-safeguards");
  });

  test("of a rejected plan shows who rejected it, why, and what to do", () => {
    const message = messageFor({ ...pending, approvals: [rejection()] });
    expect(message).toStartWith("The plan of Update web-plan was rejected by alice: not today\n");
    expect(message).toContain("pulumi.com/reconciliation-request");
  });

  test("of a rejected destroy shows how to keep the resources, and nothing of a new source", () => {
    const trigger = serializeTrigger(aTrigger({ type: "destroy" }));
    const status = { deployed: true, approval: request({ trigger, state: "Rejected", decidedBy: "alice" }) };
    const spec = { ...always, destroyOnFinalize: true };
    const message = messageFor({ deleting: true, spec, last: succeeded(), status });
    expect(message).toStartWith("The plan of Update web-plan was rejected by alice.\nNothing is destroyed");
    expect(message).toContain("set spec.destroyOnFinalize to false");
    expect(message).toContain("pulumi.com/reconciliation-request");
    expect(message).not.toContain("the source");
  });

  test("of a plan that could not be made names the error", () => {
    const update = planUpdate({
      ...finished,
      state: "failed",
      message: "The changes could not be planned: no",
      endedAt: now,
    });
    expect(messageFor({ spec: always, updates: [update] })).toContain("The changes could not be planned: no");
  });

  test("of a plan for a destroy does not say that something is destroyed", () => {
    const running = anUpdate({ type: "destroy", isPlan: true, trigger: aTrigger({ type: "destroy" }), startedAt: now });
    const setting: Setting = { deleting: true, spec: { ...always, destroyOnFinalize: true }, last: succeeded() };
    expect(messageFor({ ...setting, updates: [running] })).toStartWith("The preview web-now has been running");
  });
});

test("a Stack that cannot prepare an approved plan is reconciled when the plan expires, and makes another one", () => {
  const failed = { ...approved, workspace: { failed: "SourceUnavailable" } } as const;
  const plan = planStack(viewOf(failed));
  expect(plan.outcome).toMatchObject({ kind: "stalled", reason: "WorkspaceFailed" });
  expect(plan.requeueAt).toBe(now + 23 * hour);
});
