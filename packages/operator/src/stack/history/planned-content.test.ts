import { describe, expect, test } from "bun:test";
import { approvalKind, type Approval, type ApprovalRequest, type UpdatePlan } from "@pko/api";
import { timestamp } from "@pko/kube";

import type { SourceView } from "../../sources/source-view.ts";
import { stackEventsFor } from "../events.ts";
import { planStack } from "../rules/index.ts";
import { stackStatus } from "../status.ts";
import {
  ago,
  anUpdate,
  aTrigger,
  cases,
  creating,
  git,
  messageFor,
  now,
  stackOf,
  succeeded,
  viewOf,
  type Setting,
} from "../testing/views.ts";
import { contentOfPlan, originFor } from "./planned-content.ts";
import { serializeTrigger, type Trigger } from "./trigger.ts";

const [planned, next] = ["a", "b"].map((letter) => letter.repeat(40)) as [string, string];
const plan: UpdatePlan = {
  digest: "sha256:plan",
  secretNames: [],
  changes: true,
  destructive: true,
  unknownInputs: 0,
  summary: "delete bucket",
};

const request = (changes: Partial<ApprovalRequest> = {}, trigger: Partial<Trigger> = {}): ApprovalRequest => ({
  state: "Pending",
  updateName: "web-plan",
  updateUid: "uid-of-plan",
  digest: plan.digest,
  trigger: serializeTrigger(aTrigger({ revision: planned, ...trigger })),
  summary: plan.summary,
  expiresAt: timestamp(now + 3_600_000),
  ...changes,
});

const approval = (decision: "Approve" | "Reject"): Approval => ({
  apiVersion: approvalKind.apiVersion,
  kind: approvalKind.kind,
  metadata: { name: "approval", namespace: "default", creationTimestamp: ago(60) },
  spec: { updateName: "web-plan", updateUid: "uid-of-plan", digest: plan.digest, decision, decidedBy: "alice" },
});

const specAt = (ref: string) => ({ git: { url: git.projectRepo, ref } });
type ReadySource = Extract<SourceView, { kind: "ready" }>;
type Content = ReadySource["contentOfPlan"];
const at = (revision: string, content?: Content): ReadySource => ({
  kind: "ready",
  revision,
  aliases: [],
  spec: specAt(revision),
  ...(content && { contentOfPlan: content }),
});

const planUpdate = anUpdate({
  name: "web-plan",
  uid: "uid-of-plan",
  type: "preview",
  state: "succeeded",
  isPlan: true,
  plan,
  hasFinalizer: false,
  finalizers: [],
});

/** A plan for one commit, and a source that is at the next one. */
const moved = (content?: Content): Setting => ({
  spec: { ...git, approval: { required: "Always" } },
  updates: [planUpdate],
  origin: specAt(planned),
  source: at(next, content),
  status: { approval: request() },
});
const failing = (changes: Setting = {}): Setting => ({
  ...moved(),
  source: { ...at(next, "uncompared"), contentProblem: "the server does not respond" },
  ...changes,
});
const approvals = [approval("Approve")];
const rejected = { approval: request({ state: "Rejected" }) };

cases("a plan, when there is a new commit,", [
  ["waits for the approval if the commit has the same content", moved("same"), "none: AwaitingApproval"],
  ["is left alone until the commits are compared", { ...moved("uncompared"), approvals }, "none: unchanged"],
  ["is superseded by another content", { ...moved(), origin: specAt(next) }, creating("up for first")],
  [
    "is applied if it is approved, and the content is the same",
    { ...moved("same"), approvals },
    creating("up for first"),
  ],
  ["stays rejected with the same content", { ...moved("same"), status: rejected }, "none: ApprovalRejected"],
  ["is left alone, rejected, until they are compared", { ...moved("uncompared"), status: rejected }, "none: unchanged"],
  [
    "is superseded by another request, whatever the content",
    { ...moved("uncompared"), origin: specAt(next), request: "now", workspace: "absent" },
    "applyWorkspace: StackProcessing",
  ],
  [
    "that was applied does not cover it",
    {
      ...moved("same"),
      last: succeeded({ lastSuccessfulCommit: planned }),
      status: { approval: request({ appliedBy: "web-last" }) },
      workspace: "absent",
    },
    "applyWorkspace: StackProcessing",
  ],
]);

describe("a plan that cannot be compared with a newer commit", () => {
  const because = `also covers commit ${next} is not known, because the commits cannot be compared: the server does not respond.`;

  test("is not applied, and says why", () => {
    expect(messageFor(failing())).toContain(because);
    expect(messageFor(failing())).toContain("kubectl pulumi approve");
    expect(messageFor(failing({ approvals }))).toContain(because);
    expect(messageFor(failing({ status: rejected }))).toContain(because);
  });

  test("still waits for its approval, since the same time", () => {
    const waiting = { for: "an Approval of the plan of Update web-plan", since: ago(600) };
    const view = viewOf(failing({ status: { approval: request(), waiting } }));
    expect(stackStatus(view, planStack(view)).waiting).toEqual(waiting);
  });
});

cases("a plan that cannot be compared with a newer commit", [
  ["waits for its approval", failing(), "none: AwaitingApproval"],
  ["is not applied if it is approved", failing({ approvals }), "none: StackProcessing"],
  ["is not made again if it is rejected", failing({ status: rejected }), "none: StackProcessing"],
]);

test("an event says why a plan is made again, if the commits cannot be compared", () => {
  const why = "commits are compared only over HTTPS";
  const superseded = (source: ReadySource): string | undefined => {
    const view = viewOf({ ...moved(), origin: specAt(next), source });
    return stackEventsFor(view, planStack(view)).find(({ reason }) => reason === "StackApprovalSuperseded")?.message;
  };
  expect(superseded({ ...at(next), contentProblem: why })).toEndWith(`because the commits cannot be compared: ${why}.`);
  expect(superseded(at(next))).not.toContain("compared");
});

describe("a plan that covers a newer commit", () => {
  const status = (setting: Setting) => stackStatus(viewOf(setting), planStack(viewOf(setting)));

  test("says so, in the message and in the status", () => {
    expect(messageFor(moved("same"))).toContain(
      `The plan also covers commit ${next}, which changes nothing that it depends on.`,
    );
    expect(messageFor({ ...moved(), source: at(planned) })).not.toContain("covers");
    expect(status(moved("same")).approval?.coveredCommit).toBe(next);
    expect(status({ ...moved("same"), status: rejected }).approval).toMatchObject({
      coveredCommit: next,
      state: "Rejected",
    });
  });

  test("is applied for the newer commit, at its own", () => {
    const setting = { ...moved("same"), approvals };
    const [step] = planStack(viewOf(setting)).steps;
    expect(step).toMatchObject({ kind: "createUpdate", trigger: { revision: next }, stage: { kind: "apply" } });
    const outdated = { ...setting, origin: specAt(next) };
    expect(planStack(viewOf(outdated)).steps).toMatchObject([
      { kind: "applyWorkspace", workspace: { spec: specAt(planned) } },
    ]);
  });

  test("keeps the time since which the Stack waits", () => {
    const waiting = { for: "an Approval of the plan of Update web-plan", since: ago(600) };
    expect(status({ ...moved("same"), status: { approval: request(), waiting } }).waiting).toEqual(waiting);
    expect(status({ ...moved("uncompared"), status: { approval: request(), waiting } }).waiting).toEqual(waiting);
  });
});

describe("the content of a new commit", () => {
  const needed = (approval: ApprovalRequest | undefined, commit = next) =>
    contentOfPlan(stackOf({ status: approval ? { approval } : {} }), commit);
  const pair = { kind: "commits", pair: { from: planned, to: next } } as const;

  test("is compared with that of the plan, unless it was before", () => {
    for (const state of ["Pending", "Approved", "Rejected", "NotRequired"] as const) {
      expect(needed(request({ state }))).toEqual(pair);
    }
    expect(needed(request({ coveredCommit: "c".repeat(40) }))).toEqual(pair);
    expect(needed(request({ coveredCommit: next }))).toEqual({ kind: "same" });
  });

  test("is not needed without a plan that it may match", () => {
    const others = [
      undefined,
      request({ state: "Superseded" }),
      request({ appliedBy: "web-apply" }),
      request({ trigger: "damaged" }),
      request({}, { type: "destroy" }),
      request({}, { revision: "1" }),
      request({}, { revision: next }),
    ];
    for (const other of others) expect(needed(other)).toEqual({ kind: "noPlan" });
  });
});

test("only the application of a plan uses another commit than the source", () => {
  const apply = { kind: "apply", request: request() } as const;
  expect(originFor(specAt(next), apply)).toEqual(specAt(planned));
  expect(originFor(specAt(next), { kind: "plan" })).toEqual(specAt(next));
  const compareWith = { commit: planned, pathFilters: ["infra/**"] };
  const compared = { git: { ...specAt(next).git, compareWith } };
  expect(originFor(compared, apply)).toEqual(specAt(planned));
  const program = { program: { name: "program", generation: 2 } };
  expect(originFor(program, apply)).toEqual(program);
});
