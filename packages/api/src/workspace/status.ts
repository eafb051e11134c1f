/** The observed state of a Workspace. */
import { Type, type Static } from "typebox";

import { int64, optional, text } from "../schema/field.ts";
import { conditionsOf } from "../shared/condition.ts";
import { conditionTypes, workspaceConditions } from "../conditions.ts";

export const WorkspaceStatus = Type.Object(
  {
    observedGeneration: optional(int64("The generation of the Workspace that the status is based on.", { minimum: 0 })),
    address: optional(text("The address of the workspace's agent.")),
    pulumiVersion: optional(text("The version of the Pulumi CLI in the workspace.")),
    warning: optional(text("A warning to the owner. The workspace is ready nevertheless.")),
    unchangedSince: optional(
      text(
        "The commit of spec.git.compareWith, if no selected file differs from it. Absent if one does, or if that is not known.",
      ),
    ),
    conditions: optional(conditionsOf(conditionTypes(workspaceConditions))),
  },
  { description: "The observed state of the Workspace." },
);
export type WorkspaceStatus = Static<typeof WorkspaceStatus>;
