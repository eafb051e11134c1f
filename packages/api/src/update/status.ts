/** The observed state of an Update. */
import { Type, type Static } from "typebox";

import { conditionTypes, updateConditions } from "../conditions.ts";
import { choice, flag, int32, int64, listOf, optional, text, texts, time } from "../schema/field.ts";
import { conditionsOf } from "../shared/condition.ts";
import { projectInfo } from "../shared/project-info.ts";
import { runReportFields } from "../shared/run-report.ts";

const count = (description: string) => int64(description, { minimum: 0 });

/** The progress of an operation. Written every few seconds, not for every event. */
export const UpdateProgress = Type.Object(
  {
    time: time("The time of this report."),
    created: count("Resources created so far."),
    updated: count("Resources updated so far."),
    deleted: count("Resources deleted so far."),
    replaced: count("Resources replaced so far."),
    unchanged: count("Resources that needed no change."),
    failed: count("Resources that failed."),
    current: optional(text("The resource in progress.")),
    percent: optional(
      int32("The estimated percentage, based on the last operation on the stack.", {
        minimum: 0,
        maximum: 100,
      }),
    ),
  },
  { description: "The progress of the running operation." },
);
export type UpdateProgress = Static<typeof UpdateProgress>;

/** Identifies the CLI process of a run, and so the lock that the process may leave in a DIY backend. */
export const UpdateProcess = Type.Object(
  {
    hostname: text("The host name of the pod in which the process runs or ran."),
    pid: int64("The process's PID in that pod.", { minimum: 1 }),
    startedAt: time("The time when the process started."),
    lockedAt: time("The time when the process was first seen to hold the stack's lock."),
  },
  {
    description:
      "The process of the Pulumi CLI, recorded when it is known to hold the stack's lock. If the pod is lost, the next update removes the lock of exactly this process.",
  },
);
export type UpdateProcess = Static<typeof UpdateProcess>;

export const UpdatePlan = Type.Object(
  {
    digest: text("Identifies the plan and everything that it depends on. An Approval names it."),
    secretNames: texts("The Secrets that contain the plan, in order."),
    changes: flag("Whether the plan changes anything."),
    destructive: flag("Whether the plan replaces or deletes resources."),
    unknownInputs: int64("The number of input values that will be known only while the plan is applied.", {
      minimum: 0,
    }),
    summary: text("The changes by resource: replacements and deletions first. Values are not shown."),
  },
  { description: "The plan that a preview kept." },
);
export type UpdatePlan = Static<typeof UpdatePlan>;

/** The status must stay small: what does not fit is counted. */
const DriftedResource = Type.Object(
  {
    urn: text("The URN of the resource."),
    operation: text("What happened to the resource outside of Pulumi: update or delete."),
    properties: optional(texts("The paths of the properties that differ.")),
  },
  { description: "A resource that differs from the state." },
);

export const UpdateDrift = Type.Object(
  {
    resources: listOf(DriftedResource, "Resources that differ from the state."),
    omitted: optional(int64("The number of further resources that differ.", { minimum: 0 })),
  },
  { description: "The drift that a refresh with previewOnly has found." },
);
export type UpdateDrift = Static<typeof UpdateDrift>;

export const reportProblems = [
  "SecretMissing",
  "SecretInvalid",
  "Unauthorized",
  "NotFound",
  "Rejected",
  "RateLimited",
  "Unavailable",
] as const;
export type ReportProblem = (typeof reportProblems)[number];

/** What the forge has, and why it does not have the rest. */
export const UpdateReport = Type.Object(
  {
    digest: optional(text("Identifies what was reported, so that it is not reported again.")),
    state: optional(
      choice(["pending", "running", "success", "failure", "error"], "The status of the commit that was reported last."),
    ),
    time: optional(time("The time of the last report.")),
    commentID: optional(text("The ID of the comment on the pull request.", { maxLength: 128 })),
    due: optional(
      flag("Whether nothing about the result is reported yet. A restart of the operator does not forget it."),
    ),
    problem: optional(choice([...reportProblems], "Why the current state is not reported.")),
    message: optional(text("Details about the problem, and what to do.")),
  },
  { description: "What was reported to the forge." },
);
export type UpdateReport = Static<typeof UpdateReport>;

const PendingOperation = Type.Object(
  {
    urn: text("The URN of the resource."),
    operation: text("The interrupted operation, such as creating."),
  },
  { description: "An interrupted operation on a resource." },
);

export const UpdateStatus = Type.Object(
  {
    observedGeneration: optional(int64("The generation of the Update that the status is based on.", { minimum: 0 })),
    startTime: optional(time("The time when the operation started.")),
    endTime: optional(time("The time when the operation finished.")),
    podUid: optional(
      text("The UID of the pod in which the operation runs or ran. The operation is never started in another pod."),
    ),
    process: optional(UpdateProcess),
    progress: optional(UpdateProgress),
    permalink: optional(text("The URL of the operation in Pulumi Cloud.")),
    message: optional(text("Details about the result, such as the error.")),
    errorClass: optional(
      text("The class of the failure, such as conflict, invalidToken, pendingOperations or programError."),
    ),
    outputs: optional(text("The name of the Secret with the stack's outputs.")),
    projectInfo: optional(projectInfo("The Pulumi project of the operation.")),
    plan: optional(UpdatePlan),
    drift: optional(UpdateDrift),
    pendingOperations: optional(
      listOf(
        PendingOperation,
        "Operations on resources that were interrupted, so that Pulumi does not know their result.",
      ),
    ),
    ...runReportFields,
    report: optional(UpdateReport),
    conditions: optional(conditionsOf(conditionTypes(updateConditions))),
  },
  { description: "The observed state of the Update." },
);
export type UpdateStatus = Static<typeof UpdateStatus>;
