import {
  recordSizeAnnotation,
  triggerAnnotation,
  triggerReasonAnnotation,
  type Approval,
  type UpdateRecord,
  type UpdateRecordContent,
} from "@pko/api";
import { maxContentBytes } from "@pko/records";
import type { RecordResult, RunResult } from "@pko/rpc";
import { describe, expect, test } from "bun:test";

import { approvals } from "../../kinds.ts";
import { planUpdate } from "../rules/index.ts";
import { started } from "../testing/plans.ts";
import { at, finished, noPod, resultOf, run, viewOf, withSpec, type ViewTrait } from "../testing/views.ts";
import type { UpdateView } from "../view.ts";

function recordOf(...traits: readonly ViewTrait[]): UpdateRecord {
  const step = planUpdate(viewOf(...started, ...traits)).steps.find(({ kind }) => kind === "storeRecord");
  if (step?.kind !== "storeRecord") throw new Error("the run has no record");
  return step.record;
}

const metadata =
  (part: Partial<UpdateView["update"]["metadata"]>): ViewTrait =>
  (view) => ({ ...view, update: { ...view.update, metadata: { ...view.update.metadata, ...part } } });

const read: RecordResult = {
  content: "H4sI",
  omitted: { events: 1, resources: 0, values: 2 },
  versions: { agent: "3.0.0", pulumi: "3.200.0" },
  inputs: { config: "sha256:c" },
};

const finishedWith = (record: RecordResult, part: Partial<RunResult> = {}): ViewTrait =>
  run({ state: "finished", result: resultOf(part), outputs: [], record });

const podReads =
  (referencesHash: string): ViewTrait =>
  (view) =>
    view.pod ? { ...view, pod: { ...view.pod, referencesHash } } : view;

const decision = (part: Partial<Approval["spec"]> = {}, usedBy = "update-uid-1206"): ViewTrait => {
  const approval: Approval = {
    apiVersion: approvals.apiVersion,
    kind: approvals.kind,
    metadata: { name: "yes", creationTimestamp: at(-60_000) },
    spec: {
      updateName: "plan-1",
      updateUid: "plan-uid",
      digest: "sha256:a",
      decision: "Approve",
      decidedBy: "ada",
      ...part,
    },
    status: { usedBy: { updateName: "web-1", updateUid: usedBy, time: at(-30_000) } },
  };
  return (view) => ({ ...view, approval: { ...view.approval, approvals: [approval] } });
};

test("a record has the name and labels of its Update, which owns it", () => {
  const labels = { "pulumi.com/stack-name": "web" };
  expect(recordOf(metadata({ labels }), run(finished())).metadata).toMatchObject({
    name: "web-1",
    namespace: "default",
    labels,
    ownerReferences: [
      { kind: "Update", name: "web-1", uid: "update-uid-1206", controller: true, blockOwnerDeletion: true },
    ],
  });
});

type Case = readonly [
  sentence: string,
  traits: readonly ViewTrait[],
  expected: { readonly [F in keyof UpdateRecordContent]?: UpdateRecordContent[F] | undefined },
];

const failed: Partial<RunResult> = {
  outcome: "failed",
  error: { class: "programError", message: "no", lines: ["error: x"] },
};
const drift: Partial<RunResult> = {
  operation: "refresh",
  drift: { resources: [{ urn: "urn:a", operation: "delete", properties: [] }], omitted: 0 },
};
const owner = { apiVersion: "pulumi.com/v1", kind: "Stack", name: "web", uid: "stack-uid" };

const cases: readonly Case[] = [
  [
    "shows what ran, and when",
    [run(finished())],
    {
      updateName: "web-1",
      updateUid: "update-uid-1206",
      pulumiStack: "dev",
      workspaceName: "web",
      type: "up",
      result: "succeeded",
      startTime: at(-30_000),
      endTime: at(-1_000),
      revision: "abc",
      changes: { create: 2, same: 1 },
    },
  ],
  [
    "names the Stack that requested it",
    [metadata({ ownerReferences: [owner] }), run(finished())],
    { stackName: "web" },
  ],
  [
    "shows why the run was started",
    [metadata({ annotations: { [triggerReasonAnnotation]: "the new revision abc" } }), run(finished())],
    { trigger: "the new revision abc" },
  ],
  [
    "names the project and the page in Pulumi Cloud",
    [
      run(
        finished({ project: { name: "shop", runtime: "yaml" }, progress: { ...resultOf().progress, permalink: "u" } }),
      ),
    ],
    { projectName: "shop", permalink: "u" },
  ],
  [
    "has the agent's events, versions and digests",
    [finishedWith(read)],
    {
      content: "H4sI",
      omitted: read.omitted,
      inputs: { config: "sha256:c" },
      versions: { agent: "3.0.0", pulumi: "3.200.0", operator: expect.any(String) as string },
    },
  ],
  [
    "names the Secrets, ConfigMaps and outputs that the run used, with their versions, besides the agent's digests",
    [
      metadata({ annotations: { [triggerAnnotation]: JSON.stringify({ inputs: "db.url@a1 secret/db.password@b2" }) } }),
      podReads("c3"),
      finishedWith(read),
    ],
    { inputs: { "db.url": "a1", "secret/db.password": "b2", podReferences: "c3", config: "sha256:c" } },
  ],
  [
    "of an Update that a user has created has the hash of what its pod reads",
    [podReads("c3"), run(finished())],
    { inputs: { podReferences: "c3" } },
  ],
  ["has the error", [run(finished(failed))], { result: "failed", errorClass: "programError", message: "no\nerror: x" }],
  ["has no message after a success", [run(finished())], { message: undefined }],
  [
    "has the drift that a check has found",
    [withSpec({ type: "refresh", previewOnly: true }), run(finished(drift))],
    { type: "refresh", previewOnly: true, message: expect.stringContaining("1 resource differs") as string },
  ],
  [
    "shows who approved the plan, when and why",
    [decision({ reason: "looks good" }), run(finished())],
    { approval: { approvalName: "yes", decidedBy: "ada", time: at(-60_000), reason: "looks good" } },
  ],
  ["shows no Approval that another Update used", [decision({}, "other-uid"), run(finished())], { approval: undefined }],
  [
    "of a run that ended with its pod has no events",
    [noPod],
    { result: "interrupted", endTime: at(0), content: undefined, omitted: undefined },
  ],
  ["of a cancelled run shows it", [run(finished({ outcome: "cancelled" }))], { result: "cancelled" }],
  [
    "of a run that timed out is a failure",
    [run(finished({ outcome: "failed", error: { class: "timedOut", message: "slow", lines: [] } }))],
    { result: "failed", errorClass: "timedOut" },
  ],
  [
    "of an Update whose spec has become invalid has the agent's operation",
    [withSpec({ type: "fly" }), run(finished({ operation: "destroy" }))],
    { type: "destroy" },
  ],
];

describe("a record", () => {
  for (const [sentence, traits, expected] of cases) {
    test(sentence, () => {
      const { record } = recordOf(...traits);
      for (const [field, value] of Object.entries(expected)) {
        expect(record[field as keyof UpdateRecordContent]).toEqual(value);
      }
    });
  }
});

describe("the size of a record", () => {
  const bytes = (record: UpdateRecord): number => Buffer.byteLength(JSON.stringify(record));
  const largest: RecordResult = { ...read, content: "x".repeat(Math.ceil(maxContentBytes / 3) * 4) };
  const longText = "ü".repeat(8000);
  const longError: Partial<RunResult> = {
    outcome: "failed",
    error: { class: "programError", message: longText, lines: [] },
  };

  test("is in an annotation", () => {
    const record = recordOf(finishedWith({ ...read, content: "x".repeat(20_000) }));
    expect(Number(record.metadata.annotations?.[recordSizeAnnotation])).toBe(bytes(record));
  });

  test("is at most 64 KiB: texts are shortened before events are left out", () => {
    const record = recordOf(
      metadata({ annotations: { [triggerReasonAnnotation]: longText } }),
      decision({ reason: longText.slice(0, 1024) }),
      finishedWith(largest, longError),
    );
    expect(bytes(record)).toBeLessThanOrEqual(61 * 1024);
    expect(record.record.content?.length).toBe(largest.content.length);
    expect(record.record.message).toEndWith("…");
  });

  test("is at most 64 KiB: many inputs are left out before events", () => {
    const inputs = Array.from({ length: 1000 }, (_, at) => `secret/config.value-${at}@0123456789ab`).join(" ");
    const annotations = { [triggerAnnotation]: JSON.stringify({ inputs }) };
    const { record } = recordOf(metadata({ annotations }), finishedWith(largest));
    expect(record.inputs).toEqual(read.inputs);
    expect(record.omitted).toEqual({ ...read.omitted, inputs: 1000 });
    expect(record.content?.length).toBe(largest.content.length);
  });

  test("does not shorten a text that fits", () => {
    const { record } = recordOf(finishedWith(read, longError));
    expect(record.message).toHaveLength(8000);
  });

  const own = { "pulumi.com/component": "stack", "pulumi.com/stack-name": "web" };
  const manyLabels = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`label-${i}`, "v".repeat(63)]));

  test("is at most 64 KiB even if the Update has long labels: only those remain by which the record is found", () => {
    const record = recordOf(metadata({ labels: { ...manyLabels, ...own } }), finishedWith(read));
    expect(bytes(record)).toBeLessThanOrEqual(61 * 1024);
    expect(record.metadata.labels).toEqual(own);
    expect(record.record.content).toBe("H4sI");
  });

  for (const [what, char] of [
    ["quotes", '"'],
    ["control characters", "\u0001"],
    ["emoji", "🙂"],
  ] as const) {
    test(`is at most 64 KiB even if texts consist of ${what}, which need more bytes than characters`, () => {
      const text = char.repeat(4000);
      const record = recordOf(
        metadata({ labels: own, annotations: { [triggerReasonAnnotation]: text } }),
        decision({ reason: text }),
        finishedWith(largest, { ...longError, error: { class: "programError", message: text, lines: [] } }),
      );
      expect(bytes(record)).toBeLessThanOrEqual(61 * 1024);
      expect(record.record.content?.length).toBe(largest.content.length);
      expect(record.record.message).toMatch(new RegExp(`^${char}{20,}…$`, "u"));
      expect(record.record.message?.isWellFormed()).toBe(true);
      expect(record.metadata.labels).toEqual(own);
    });
  }

  const manyKinds = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`operation-${i}`, 1]));

  test("is at most 64 KiB also if there are too many kinds of changes: they are left out before events are", () => {
    const record = recordOf(finishedWith(largest, { ...failed, changes: manyKinds }));
    expect(bytes(record)).toBeLessThanOrEqual(61 * 1024);
    expect(record.record).toMatchObject({ updateName: "web-1", result: "failed", errorClass: "programError" });
    expect(record.record.changes).toBeUndefined();
    expect(record.record.content).toBe(largest.content);
  });

  test("is at most 64 KiB also if nothing leaves room for the events: what the agent omitted is still counted", () => {
    const tooLarge: RecordResult = { ...read, content: "x".repeat(62 * 1024) };
    const record = recordOf(metadata({ labels: { ...manyLabels, ...own } }), finishedWith(tooLarge, failed));
    expect(bytes(record)).toBeLessThanOrEqual(61 * 1024);
    expect(record.record).toMatchObject({ updateName: "web-1", result: "failed", omitted: read.omitted });
    expect(record.record.content).toBeUndefined();
    expect(record.metadata.labels).toEqual(own);
  });
});
