/** What is known of a Workspace. */
import { Type, type Static } from "typebox";

import { int64, optional, text } from "../schema/field.ts";
import { conditionsOf } from "../shared/condition.ts";
import { conditionTypes, workspaceConditions } from "../conditions.ts";

export const WorkspaceStatus = Type.Object(
  {
    observedGeneration: optional(int64("The generation that the status speaks of.", { minimum: 0 })),
    address: optional(text("Where the workspace's agent listens.")),
    pulumiVersion: optional(text("The version of the Pulumi CLI in the workspace.")),
    warning: optional(text("What its owner should know although it is ready.")),
    conditions: optional(conditionsOf(conditionTypes(workspaceConditions))),
  },
  { description: "What the operator last saw of the workspace." },
);
export type WorkspaceStatus = Static<typeof WorkspaceStatus>;
