/** What is known of an Update. */
import { Type, type Static } from "typebox";

import { conditionTypes, updateConditions } from "../conditions.ts";
import { int64, optional, text, time } from "../schema/field.ts";
import { conditionsOf } from "../shared/condition.ts";
import { projectInfo } from "../shared/project-info.ts";
import { runReportFields } from "../shared/run-report.ts";

export const UpdateStatus = Type.Object(
  {
    observedGeneration: optional(int64("The generation that the status speaks of.", { minimum: 0 })),
    startTime: optional(time("When the operation began.")),
    endTime: optional(time("When the operation ended.")),
    permalink: optional(text("The operation's page in Pulumi Cloud.")),
    message: optional(text("What went wrong, or what is worth knowing.")),
    outputs: optional(text("The Secret that holds the stack's outputs.")),
    projectInfo: optional(projectInfo("The project that was run.")),
    ...runReportFields,
    conditions: optional(conditionsOf(conditionTypes(updateConditions))),
  },
  { description: "How the operation went." },
);
export type UpdateStatus = Static<typeof UpdateStatus>;
