import { describe, expect, test } from "bun:test";
import { approvalKind, type Approval, type UpdatePlan } from "@pko/api";

import { startRequest } from "../desired/operation.ts";
import { containing, endsAs, endsRecorded, hour, minute, passOver, started, table } from "../testing/plans.ts";
import {
  at,
  completed,
  createdAgo,
  noon,
  refused,
  run,
  viewOf,
  withFinalizer,
  withSpec,
  withStatus,
  workspaceIs,
  workspaceReady,
  type ViewTrait,
} from "../testing/views.ts";
import type { ApprovalFacts, PlanContent, PlanFacts, UpdateView } from "../view.ts";
import { awaitsApproval } from "./approval.ts";

const plan = (changes: Partial<UpdatePlan> = {}): UpdatePlan => ({
  digest: "sha256:plan",
  secretNames: ["web-plan-plan-0"],
  changes: true,
  destructive: true,
  unknownInputs: 0,
  summary: "- delete bucket",
  ...changes,
});

const made = (changes: Partial<PlanFacts> = {}): PlanFacts => ({
  name: "web-plan",
  uid: "plan-uid",
  workspaceName: "web",
  stackName: "dev",
  operation: "up",
  plan: plan(),
  endedAt: noon - 10 * minute,
  ...changes,
});

const approval = (changes: Partial<Approval["spec"]> = {}, status: Approval["status"] = {}): Approval => ({
  apiVersion: approvalKind.apiVersion,
  kind: approvalKind.kind,
  metadata: { name: "yes", uid: "approval-uid", resourceVersion: "5", creationTimestamp: at(-minute) },
  spec: {
    updateName: "web-plan",
    updateUid: "plan-uid",
    digest: "sha256:plan",
    decision: "Approve",
    decidedBy: "alice",
    ...changes,
  },
  status,
});

const usedBy = (updateUid: string): Approval["status"] => ({
  usedBy: { updateName: "web-other", updateUid, time: at(-1000) },
});

const policy = { required: "Always", expiresAfterMs: 60 * minute } as const;
const free = { state: "present", name: "web", isProtected: false } as const;
const requiring = { ...free, policy } as const;

const withApproval =
  (facts: Partial<ApprovalFacts>): ViewTrait =>
  (view) => ({ ...view, approval: { stack: requiring, approvals: [], least: "Never", ...facts } });

const applyPlan = { updateName: "web-plan", updateUid: "plan-uid", digest: "sha256:plan" };
const applying = withSpec({ applyPlan: { ...applyPlan, approvalName: "yes" } });
const approved = withApproval({ plan: made(), approvals: [approval()] });
const planRead =
  (content: PlanContent = { kind: "read", content: "sealed" }): ViewTrait =>
  (view) => ({ ...view, planContent: content });
const ready = [workspaceReady, withFinalizer, planRead()];
const returnsSlot = { steps: [{ kind: "giveUpSlot" }], isWritten: false };
const policyIs =
  (approvalPolicy: UpdateView["approvalPolicy"]): ViewTrait =>
  (view) => ({ ...view, approvalPolicy });
const policyMissing = policyIs({ kind: "missing", policy: "approvals" });

/** Once the API server confirms what that is based on. */
const refuses = (message: string) => ({
  ...endsAs("Failed", "confirmApproval"),
  status: { message: containing(message) },
});
const starts = (...steps: readonly string[]) => ({
  steps: ["claimSlot", "confirmReady", ...steps].map((kind) => ({ kind })),
  status: { podUid: "pod-a" },
});

test.each<[string, ViewTrait[], boolean]>([
  ["while it waits to apply a plan", [applying], true],
  ["also without a Workspace", [applying, workspaceIs({ state: "missing" })], true],
  ["not if it applies none", [], false],
  ["not once it has started", [applying, withStatus({ podUid: "pod-a" })], false],
  ["not after its end", [applying, completed(1000)], false],
])("an Update needs the admission policies: %s", (_, traits, needs) => {
  expect(awaitsApproval(viewOf(...traits))).toBe(needs);
});

table("an Update in the Workspace of a Stack that requires approvals", [
  ["is refused if it applies no plan", [withApproval({})], refuses("applies no approved plan")],
  [
    "is refused before it waits for its Workspace",
    [workspaceIs({ state: "notReady", message: "so" }), withApproval({})],
    refuses("applies no approved plan"),
  ],
  [
    "is refused even if it is a destroy",
    [withSpec({ type: "destroy" }), withApproval({})],
    refuses("no approved plan"),
  ],
  ["starts if it is a preview", [...ready, withSpec({ type: "preview" }), withApproval({})], starts()],
  ["starts if it only refreshes the state", [...ready, withSpec({ type: "refresh" }), withApproval({})], starts()],
  [
    "starts if it is the preview of a destroy",
    [...ready, withSpec({ type: "destroy", previewOnly: true }), withApproval({})],
    starts(),
  ],
  [
    "starts without a plan if the Stack does not require approvals, which the API server confirms",
    [...ready, withApproval({ stack: free })],
    starts("confirmApproval"),
  ],
  [
    "waits until its Stack is known",
    [...ready, withApproval({ stack: { state: "missing", name: "web" } })],
    { ...returnsSlot, requeueAt: noon + 15_000 },
  ],
  [
    "is refused without a plan while the admission policy is missing",
    [...ready, withApproval({}), policyMissing],
    refuses("applies no approved plan"),
  ],
  [
    "waits with its approved plan while the admission policy is missing",
    [...ready, applying, approved, policyMissing],
    { ...returnsSlot, requeueAt: noon + 15_000 },
  ],
  [
    "waits until the admission policy was checked",
    [...ready, applying, approved, policyIs({ kind: "unknown" })],
    { ...returnsSlot, requeueAt: noon + 15_000 },
  ],
  [
    "is requeued after five seconds while the admission policy is missing, if it is new",
    [...ready, applying, approved, policyMissing, createdAgo(0)],
    { ...returnsSlot, requeueAt: noon + 5_000 },
  ],
  [
    "is requeued every minute once it has waited long for the admission policy",
    [...ready, applying, approved, policyMissing, createdAgo(hour)],
    { ...returnsSlot, requeueAt: noon + minute },
  ],
  [
    "takes no slot while the admission policy is missing",
    [...ready, applying, approved, policyMissing, (view) => ({ ...view, slot: { kind: "none" } })],
    { ...returnsSlot, requeueAt: noon + 15_000 },
  ],
]);

const guarded = withApproval({ stack: { ...free, isProtected: true } });

table("an Update in the Workspace of a protected Stack", [
  [
    "is refused if it is a destroy",
    [...ready, withSpec({ type: "destroy" }), guarded],
    refuses("Stack web is protected"),
  ],
  [
    "is refused if it destroys by an approved plan",
    [...ready, applying, withSpec({ type: "destroy" }), withApproval({ stack: { ...requiring, isProtected: true } })],
    refuses("Stack web is protected"),
  ],
  ["starts if it is an up", [...ready, guarded], starts("confirmApproval")],
  [
    "starts if it only shows what a destroy would do",
    [...ready, withSpec({ type: "destroy", previewOnly: true }), guarded],
    starts(),
  ],
]);

table("an Update that applies a plan", [
  [
    "uses the approval before its pod is recorded",
    [...ready, applying, approved],
    {
      ...starts("confirmApproval"),
      steps: [
        { kind: "claimSlot", starts: true },
        { kind: "confirmReady" },
        { kind: "confirmApproval" },
        { kind: "useApproval", approval: { name: "yes", uid: "approval-uid", resourceVersion: "5" } },
      ],
    },
  ],
  [
    "continues if it has used the approval before a crash",
    [...ready, applying, withApproval({ plan: made(), approvals: [approval({}, usedBy("update-uid-1206"))] })],
    starts("confirmApproval"),
  ],
  [
    "is refused if another Update has used the approval",
    [...ready, applying, withApproval({ plan: made(), approvals: [approval({}, usedBy("other-uid"))] })],
    refuses("which Update web-other has taken"),
  ],
  [
    "starts without an approval if the plan changes nothing",
    [
      ...ready,
      applying,
      withApproval({ plan: made({ plan: plan({ changes: false, destructive: false }) }) }),
      withSpec({ applyPlan }),
    ],
    starts("confirmApproval"),
  ],
  [
    "starts without an approval if only destructive changes need one",
    [
      ...ready,
      withSpec({ applyPlan }),
      withApproval({
        stack: { ...requiring, policy: { ...policy, required: "OnDestructiveChanges" } },
        plan: made({ plan: plan({ destructive: false }) }),
      }),
    ],
    starts("confirmApproval"),
  ],
  [
    "is refused without an approval",
    [...ready, withSpec({ applyPlan }), withApproval({ plan: made() })],
    refuses("has not been approved"),
  ],
  [
    "is refused if the named Approval does not exist",
    [...ready, withSpec({ applyPlan: { ...applyPlan, approvalName: "no" } }), approved],
    refuses("There is no Approval no"),
  ],
  [
    "is refused if the Approval is of another plan",
    [...ready, applying, withApproval({ plan: made(), approvals: [approval({ digest: "sha256:other" })] })],
    refuses("There is no Approval yes"),
  ],
  [
    "is refused if the plan was rejected",
    [
      ...ready,
      applying,
      withApproval({ plan: made(), approvals: [approval(), approval({ decision: "Reject", decidedBy: "bob" })] }),
    ],
    refuses("was rejected by bob"),
  ],
  [
    "waits until it is known which WorkspaceClass applies",
    [...ready, withApproval({ stack: free, least: "unknown" })],
    returnsSlot,
  ],
  [
    "is refused if the plan has expired",
    [...ready, applying, withApproval({ plan: made({ endedAt: noon - 60 * minute }), approvals: [approval()] })],
    refuses("expired at 2030-01-01T12:00:00Z"),
  ],
  [
    "is refused if the Update with the plan does not exist",
    [...ready, applying, withApproval({})],
    refuses("there is no Update web-plan"),
  ],
  ...(
    [
      ["was replaced", { uid: "other" }],
      ["has another plan", { plan: plan({ digest: "sha256:other" }) }],
      ["has planned a destroy", { operation: "destroy" }],
      ["is of another Workspace", { workspaceName: "other" }],
      ["is of another stack", { stackName: "other" }],
    ] as const
  ).map(
    ([what, changes]) =>
      [
        `is refused if the Update with the plan ${what}`,
        [...ready, applying, withApproval({ plan: made(changes), approvals: [approval()] })],
        refuses("there is no Update web-plan"),
      ] as const,
  ),
  [
    "applies it without an approval in a Workspace of its own",
    [
      ...ready,
      withSpec({ applyPlan }),
      (view) => ({ ...view, approval: { plan: made(), approvals: [], least: "Never" } }),
    ],
    starts("confirmApproval"),
  ],
]);

const unread: ViewTrait = (view) => {
  const { planContent: _, ...rest } = view;
  return rest;
};
const lost = planRead({ kind: "lost", why: "Secret web-plan-plan-0 with the plan does not exist." });
const source = { updateName: "web-plan", updateUid: "plan-uid", secretNames: ["web-plan-plan-0"] };

table("the plan of an Update", [
  [
    "is read before the start",
    [...ready, unread, applying, approved],
    { steps: [{ kind: "readPlan", plan: source }], isWritten: false },
  ],
  [
    "must be there",
    [...ready, lost, applying, approved],
    { ...endsAs("Failed"), status: { message: containing("A new plan is needed") } },
  ],
  [
    "is read again after the start, and after a restart",
    [...started, applying, approved],
    { steps: [{ kind: "readPlan", plan: source }], isWritten: false },
  ],
  [
    "is passed on with the first request",
    [...started, planRead(), applying, approved],
    { steps: [{ kind: "followRun" }] },
  ],
  [
    "was lost after the start: the run is attached to, never started",
    [...started, lost, applying, approved],
    { steps: [{ kind: "attachRun", runId: "update-uid-1206" }] },
  ],
  [
    "does not matter to an Update that may be running",
    [...started, applying, withApproval({}), run({ state: "starting" })],
    { steps: [] },
  ],
  [
    "was lost, and the agent has never started the run",
    [...started, applying, withApproval({}), run(refused("notFound"))],
    endsRecorded("Aborted"),
  ],
]);

describe("the request to the agent", () => {
  const operation = (...traits: readonly ViewTrait[]) => {
    const view = viewOf(...traits);
    return view.spec.ok ? startRequest(view, view.spec.value).operation : undefined;
  };

  test("has the plan with the digest that was approved, whatever the Secrets contain", () => {
    const tampered = planRead({ kind: "read", content: "tampered" });
    const expected = { digest: "sha256:plan", content: "tampered" };
    expect(operation(applying, tampered)).toMatchObject({ kind: "up", applyPlan: expected });
    expect(operation(applying, withSpec({ type: "destroy" }), tampered)).toMatchObject({ applyPlan: expected });
  });

  test("asks for a plan", () => {
    expect(operation(withSpec({ type: "preview", savePlan: true }))).toEqual({ kind: "preview", savePlan: true });
    expect(operation(withSpec({ type: "destroy", previewOnly: true, savePlan: true }))).toEqual({
      kind: "destroy",
      previewOnly: true,
      savePlan: true,
    });
  });
});

describe("an Update that has made a plan", () => {
  const summary = { digest: "sha256:plan", changes: true, destructive: true, unknownInputs: 3, summary: "- bucket" };
  const sealed = { digest: "sha256:plan", content: "x".repeat(960 * 1024 + 1) };
  const result = {
    outcome: "succeeded",
    operation: "preview",
    stack: "dev",
    revision: "abc",
    startedAt: at(-30_000),
    finishedAt: at(-1000),
    changes: { delete: 1 },
    output: { tail: "", bytes: 0, truncated: false },
  } as const;
  const progress = { created: 0, updated: 0, deleted: 0, replaced: 0, unchanged: 0, failed: 0, other: 0 };
  const finished = (more: object): ViewTrait =>
    run({ state: "finished", result: { ...result, progress, plan: summary }, outputs: [], ...more } as never);
  const planning = withSpec({ type: "preview", savePlan: true });

  test("stores it in parts, and reports it in its status", () => {
    const { plan: steps, status } = passOver(viewOf(...started, planning, finished({ plan: sealed })));
    expect(status.plan).toEqual({ ...summary, secretNames: ["web-1-plan-0", "web-1-plan-1"] });
    const [step] = steps.steps;
    const secrets = step?.kind === "storeResult" ? (step.secrets.plan?.secrets ?? []) : [];
    const parts = secrets.map(({ data }) => Buffer.from(data?.["plan"] ?? "", "base64").toString());
    expect(parts.join("")).toBe(sealed.content);
    expect(secrets[0]).toMatchObject({
      type: "Opaque",
      immutable: true,
      metadata: { ownerReferences: [{ uid: "update-uid-1206" }] },
    });
  });

  const failures: readonly (readonly [string, ViewTrait[], string])[] = [
    ["cannot be read", [finished({ planProblem: "gone" })], "gone"],
    [
      "was not reported",
      [run({ state: "finished", result: { ...result, progress }, outputs: [] } as never)],
      "reported no plan",
    ],
    ["was not returned with its summary", [finished({})], "reported no plan"],
    ["cannot be stored", [finished({ plan: sealed }), (view) => ({ ...view, planFailure: "too large" })], "too large"],
  ];
  for (const [sentence, traits, why] of failures) {
    test(`fails if the plan ${sentence}`, () => {
      const { status, plan } = passOver(viewOf(...started, planning, ...traits));
      expect(status.conditions?.find(({ type }) => type === "Failed")?.status).toBe("True");
      expect(status.message).toContain(why);
      expect(status.plan).toBeUndefined();
      expect(plan.steps).toMatchObject([{ kind: "storeResult" }, { record: { record: { result: "failed" } } }]);
    });
  }

  test("reports a preview of a destroy as a preview", () => {
    const destroy = withSpec({ type: "destroy", previewOnly: true, savePlan: true });
    const { status } = passOver(viewOf(...started, destroy, withStatus({}), finished({ plan: sealed })));
    expect(status.summary).toBe("1 to delete");
  });
});
