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

export const UpdateStatus = Type.Object(
  {
    observedGeneration: optional(int64("The generation that the status speaks of.", { minimum: 0 })),
    startTime: optional(time("When the operation began.")),
    endTime: optional(time("When the operation ended.")),
    podUid: optional(text("The pod in which the operation runs or ran: it is never started in another.")),
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
