import type { RunResult } from "@pko/rpc";
import { expect, test } from "bun:test";

import {
  containing,
  endsAs,
  endsRecorded,
  fails,
  hour,
  lacking,
  matching,
  minute,
  passOver,
  progressAt,
  started,
  succeeds,
  table,
} from "../testing/plans.ts";
import {
  at,
  condition,
  finished,
  noPod,
  output,
  podIs,
  refused,
  resultOf,
  run,
  viewOf,
  withSpec,
  withStatus,
  workspaceReady,
} from "../testing/views.ts";

const pending = { urn: "urn:a", operation: "creating" };

const driftedUrn = "urn:pulumi:dev::demo::kubernetes:core/v1:ConfigMap::settings";
const drifted = {
  operation: "refresh" as const,
  changes: { update: 1 },
  output: { tail: "Previewing refresh (dev)", bytes: 24, truncated: false },
  drift: { resources: [{ urn: driftedUrn, operation: "update", properties: ["data.mode"] }], omitted: 2 },
} satisfies Partial<RunResult>;

table("an Update whose run has finished", [
  ["succeeds", [...started, run(finished())], succeeds],
  [
    "has the agent's end time",
    [...started, run(finished())],
    { status: { endTime: at(-1_000), startTime: at(-30_000), podUid: "pod-a" } },
  ],
  [
    "fails as timed out if the agent stopped it",
    [
      ...started,
      run(finished({ outcome: "failed", error: { class: "timedOut", message: "the run was stopped", lines: [] } })),
    ],
    { ...fails("TimedOut"), status: { errorClass: "timedOut", message: "the run was stopped" } },
  ],
  [
    "reports the operations that it interrupted, before the lines of the program",
    [
      ...started,
      run(
        finished({
          outcome: "failed",
          error: { class: "timedOut", message: "the run was stopped", lines: ["warning: slow"] },
          pendingOperations: [pending],
        }),
      ),
    ],
    {
      status: {
        pendingOperations: [pending],
        message: matching(
          /^the run was stopped\nWarning: the state has pending operations.*creating urn:a.*\nwarning: slow$/,
        ),
      },
    },
  ],
  [
    "reports pending operations even if it succeeds, and as many as fit",
    [...started, run(finished({ pendingOperations: Array.from({ length: 100 }, () => pending) }))],
    {
      ...succeeds,
      status: {
        pendingOperations: Array.from({ length: 20 }, () => pending),
        message: containing("; and 95 more."),
      },
    },
  ],
  [
    "never ends before it starts",
    [...started, run(finished({ finishedAt: at(-hour) }))],
    { status: { endTime: at(-30_000) } },
  ],
  [
    "reports its changes as numbers and as a summary",
    [...started, run(finished())],
    { status: { changes: { create: 2, same: 1 }, summary: "2 created, 1 unchanged" } },
  ],
  [
    "reports the changes of a preview as plans",
    [
      ...started,
      withSpec({ type: "preview" }),
      run(finished({ operation: "preview", changes: { create: 2, delete: 1 } })),
    ],
    { status: { summary: "2 to create, 1 to delete" } },
  ],
  [
    "reports drift, which is not a failure, with the text that the CLI printed",
    [...started, withSpec({ type: "refresh", previewOnly: true }), run(finished(drifted))],
    {
      ...succeeds,
      status: {
        drift: { resources: [{ urn: driftedUrn, operation: "update", properties: ["data.mode"] }], omitted: 2 },
        summary: "1 to update",
        stdout: { text: "Previewing refresh (dev)", truncated: false },
      },
    },
  ],
  [
    "reports no drift without the text that the CLI printed",
    [...started, run(finished({ ...drifted, changes: { same: 1 }, drift: { resources: [], omitted: 0 } }))],
    { ...succeeds, status: lacking("stdout") },
  ],
  [
    "reports the agent's project, even if this operator has not prepared it",
    [...started, run(finished({ project: { name: "shop", runtime: "yaml" } }))],
    { status: { projectInfo: { name: "shop", runtime: "yaml" } } },
  ],
  [
    "has no progress",
    [...started, withStatus({ progress: progressAt(0, 2) }), run(finished())],
    { status: lacking("progress") },
  ],
  [
    "fails with the program's own messages",
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
    "reports a conflict in its error class",
    [
      ...started,
      run(finished({ outcome: "failed", error: { class: "conflict", message: "Another update runs.", lines: [] } })),
    ],
    { ...fails("UpdateFailed"), status: { errorClass: "conflict" } },
  ],
  ["is cancelled", [...started, run(finished({ outcome: "cancelled" }))], fails("Canceled")],
  [
    "is aborted if a restart of the agent interrupted it",
    [...started, run(finished({ outcome: "interrupted" }))],
    fails("Aborted"),
  ],
  ["has its result recorded even if the pod is deleted", [...started, noPod, run(finished())], succeeds],
  [
    "stores its outputs in the Secret that its status names",
    [...started, run(finished({}, [output("url", "http://x"), output("password", "canary", true)]))],
    {
      steps: [
        {
          secrets: {
            outputs: {
              immutable: true,
              metadata: { name: "web-1-stack-outputs", annotations: { "pulumi.com/secrets": '["password"]' } },
            },
          },
        },
        {},
      ],
      status: { outputs: "web-1-stack-outputs" },
    },
  ],
  ["has no Secret without outputs", [...started, run(finished())], { status: lacking("outputs") }],
  [
    "reports outputs that could not be read, and names their Secret nevertheless",
    [...started, run({ state: "finished", result: resultOf(), outputs: [], outputsProblem: "the CLI failed" })],
    {
      ...succeeds,
      steps: [{ secrets: { unreadOutputs: "web-1-stack-outputs" } }, {}],
      status: { message: containing("the CLI failed"), outputs: "web-1-stack-outputs" },
    },
  ],
  [
    "reports the output of a preview",
    [...started, run(finished({ operation: "preview", output: { tail: "+ create", bytes: 8, truncated: false } }))],
    { status: { stdout: { text: "+ create", truncated: false } } },
  ],
  [
    "stores a long output in a Secret",
    [
      ...started,
      run(finished({ operation: "preview", output: { tail: "x".repeat(20_000), bytes: 20_000, truncated: false } })),
    ],
    {
      steps: [{ secrets: { stdout: { metadata: { name: "web-1-stdout" } } } }, {}],
      status: { stdout: { truncated: true, secretName: "web-1-stdout" } },
    },
  ],
  [
    "reports the output of an up that failed",
    [...started, run(finished({ outcome: "failed", output: { tail: "boom", bytes: 4, truncated: false } }))],
    { status: { stdout: { text: "boom" } } },
  ],
  [
    "does not report the output of an up that succeeded",
    [...started, run(finished({ output: { tail: "fine", bytes: 4, truncated: false } }))],
    { status: lacking("stdout") },
  ],
]);

table("an Update without a result", [
  ["fails if the agent rejects the operation", [...started, run(refused("other"))], endsRecorded("UpdateFailed")],
  [
    "is not started again if the agent has no record of it",
    [...started, run(refused("notFound"))],
    endsRecorded("Aborted"),
  ],
  ["is not started in another pod", [...started, podIs("pod-b")], endsRecorded("Aborted", "confirmPodDeleted")],
  [
    "is not started when its pod is deleted, which the API server must confirm",
    [...started, noPod],
    endsRecorded("Aborted", "confirmPodDeleted"),
  ],
  [
    "reports that its pod was replaced",
    [...started, podIs("pod-b")],
    { outcome: { ending: { message: containing("replaced") } }, status: { endTime: at(0) } },
  ],
  [
    "is not started again if an earlier operator started it",
    [workspaceReady, withStatus({ startTime: at(-minute) })],
    endsAs("Aborted"),
  ],
  [
    "is not started again if an earlier operator only reported that it progresses",
    [workspaceReady, withStatus({ conditions: [condition("Progressing", "True", "Progressing")] })],
    endsAs("Aborted"),
  ],
]);

test("secret outputs are in the Secret only", () => {
  const { plan, status, events } = passOver(
    viewOf(...started, run(finished({}, [output("password", "canary", true)]))),
  );
  const [step] = plan.steps;
  if (step?.kind !== "storeResult") throw new Error(step?.kind);
  expect(Buffer.from(step.secrets.outputs?.data?.["password"] ?? "", "base64").toString()).toBe('"canary"');
  expect(JSON.stringify([plan.steps.slice(1), plan.outcome, status, events])).not.toContain("canary");
});
