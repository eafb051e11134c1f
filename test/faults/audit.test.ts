import { describe, expect, test } from "bun:test";

import { violations, type Audited, type ChangingRun, type SeenApproval, type SeenPlan } from "./audit.ts";

const spec = {
  updateName: "vault-1",
  updateUid: "plan-1",
  digest: "sha256:1",
  decision: "Approve",
  decidedBy: "anna",
} as const;
const approval: SeenApproval = { name: "vault-1-decision", spec, usedBy: new Set(["run-1"]), isTaken: false };
const plan: SeenPlan = { digest: "sha256:1", destructive: false };
const run: ChangingRun = { runId: "run-1", stack: "vault", kind: "up" };
const audited: Audited = {
  guarded: { vault: "Always" },
  runs: [run],
  applied: new Map([["run-1", "sha256:1"]]),
  approvals: [approval],
  plans: new Map([["plan-1", plan]]),
};

const unapproved = ["up vault ran without an Approval of its plan"];

/** Only destructive changes need an approval. */
const partly = { guarded: { vault: "OnDestructiveChanges" } } as const;

const cases: readonly (readonly [string, Partial<Audited>, readonly string[]])[] = [
  ["an approved run", {}, []],
  ["a run of a stack that needs no approval", { guarded: {}, approvals: [] }, []],
  ["a run without an Approval", { approvals: [] }, unapproved],
  ["a run without a plan", { applied: new Map() }, unapproved],
  ["a run of another plan", { applied: new Map([["run-1", "sha256:2"]]) }, unapproved],
  ["a rejected run", { approvals: [{ ...approval, spec: { ...spec, decision: "Reject" } }] }, unapproved],
  ["an Approval that is not used", { approvals: [{ ...approval, usedBy: new Set() }] }, unapproved],
  ["an Approval that another Update used", { approvals: [{ ...approval, usedBy: new Set(["run-2"]) }] }, unapproved],
  ["an Approval of a plan that nobody made", { plans: new Map() }, unapproved],
  ["a run without an Approval that destroys nothing", { ...partly, approvals: [] }, []],
  [
    "a run without an Approval that destroys something",
    { ...partly, approvals: [], plans: new Map([["plan-1", { ...plan, destructive: true }]]) },
    unapproved,
  ],
  ["a run without a plan where some need no approval", { ...partly, approvals: [], applied: new Map() }, unapproved],
  [
    "a destroy without an Approval",
    { ...partly, approvals: [], runs: [{ ...run, kind: "destroy" }] },
    ["destroy vault ran without an Approval of its plan"],
  ],
  [
    "an Approval that two runs used",
    {
      runs: [run, { ...run, runId: "run-2" }],
      applied: new Map(["run-1", "run-2"].map((id) => [id, "sha256:1"])),
      approvals: [{ ...approval, usedBy: new Set(["run-1", "run-2"]) }],
    },
    ["the Approval vault-1-decision was used by 2 runs"],
  ],
  [
    "an Approval that an Update used after another one was withdrawn",
    { approvals: [{ ...approval, usedBy: new Set(["run-0", "run-1"]) }] },
    [],
  ],
  [
    "an Approval that an Update took from another one",
    { approvals: [{ ...approval, isTaken: true }] },
    ["the Approval vault-1-decision was taken from the Update that used it"],
  ],
  [
    "a destroy after the up of the same plan",
    {
      runs: [run, { ...run, runId: "run-2", kind: "destroy" }],
      applied: new Map(["run-1", "run-2"].map((id) => [id, "sha256:1"])),
    },
    ["destroy vault ran without an Approval of its plan"],
  ],
];

describe("an audit", () => {
  for (const [what, change, expected] of cases) {
    test(`of ${what} finds ${expected.length === 0 ? "nothing" : expected.join(", ")}`, () => {
      expect(violations({ ...audited, ...change })).toEqual([...expected]);
    });
  }
});
