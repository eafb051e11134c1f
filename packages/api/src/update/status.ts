/** What is known of an Update. */
import { Type, type Static } from "typebox";

import { conditionTypes, updateConditions } from "../conditions.ts";
import { int32, int64, optional, text, time } from "../schema/field.ts";
import { conditionsOf } from "../shared/condition.ts";
import { projectInfo } from "../shared/project-info.ts";
import { runReportFields } from "../shared/run-report.ts";

const count = (description: string) => int64(description, { minimum: 0 });

/** How far an operation is. Written every few seconds, not for every event. */
export const UpdateProgress = Type.Object(
  {
    time: time("When this was so."),
    created: count("Resources created so far."),
    updated: count("Resources updated so far."),
    deleted: count("Resources deleted so far."),
    replaced: count("Resources replaced so far."),
    unchanged: count("Resources found as they should be."),
    failed: count("Resources that failed."),
    current: optional(text("The resource that is being worked on.")),
    percent: optional(
      int32("How much is done, where the last operation on the stack tells how much there is.", {
        minimum: 0,
        maximum: 100,
      }),
    ),
  },
  { description: "How far the operation is, while it runs." },
);
export type UpdateProgress = Static<typeof UpdateProgress>;

/** The CLI process of a run, by which the lock that it may leave in a DIY backend is recognised. */
export const UpdateProcess = Type.Object(
  {
    hostname: text("The host name of the pod in which the process runs or ran."),
    pid: int64("The process's PID in that pod.", { minimum: 1 }),
    startedAt: time("When the process started."),
    lockedAt: time("When the process was first seen to hold the stack's lock."),
  },
  {
    description:
      "The Pulumi CLI's process, recorded once it is known to hold the stack's lock. If the pod is lost, the next update removes the lock of this very process, and no other.",
  },
);
export type UpdateProcess = Static<typeof UpdateProcess>;

export const UpdateStatus = Type.Object(
  {
    observedGeneration: optional(int64("The generation that the status speaks of.", { minimum: 0 })),
    startTime: optional(time("When the operation began.")),
    endTime: optional(time("When the operation ended.")),
    podUid: optional(text("The pod in which the operation runs or ran: it is never started in another.")),
    process: optional(UpdateProcess),
    progress: optional(UpdateProgress),
    permalink: optional(text("The operation's page in Pulumi Cloud.")),
    message: optional(text("What went wrong, or what is worth knowing.")),
    errorClass: optional(
      text("The kind of failure, for machines: conflict, invalidToken, pendingOperations, programError and others."),
    ),
    outputs: optional(text("The Secret that holds the stack's outputs.")),
    projectInfo: optional(projectInfo("The project that was run.")),
    ...runReportFields,
    conditions: optional(conditionsOf(conditionTypes(updateConditions))),
  },
  { description: "How the operation went." },
);
export type UpdateStatus = Static<typeof UpdateStatus>;
