/** The observed state of an Update. */
import { Type, type Static } from "typebox";

import { conditionTypes, updateConditions } from "../conditions.ts";
import { int32, int64, optional, text, time } from "../schema/field.ts";
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
    ...runReportFields,
    conditions: optional(conditionsOf(conditionTypes(updateConditions))),
  },
  { description: "The observed state of the Update." },
);
export type UpdateStatus = Static<typeof UpdateStatus>;
