/** What a Stack asks for. */
import { Type, type Static } from "typebox";

import { validatedBy } from "../schema/cel.ts";
import { optional, text } from "../schema/field.ts";
import { configurationFields } from "./configuration.ts";
import { lifecycleFields } from "./lifecycle.ts";
import { sourceFields, sourceRules } from "./source.ts";
import { UpdateTemplate, WorkspaceTemplate } from "./templates.ts";

export const StackSpec = Type.Object(
  {
    stack: text("The name of the Pulumi stack: organization/project/stack, or less where that is clear."),
    ...sourceFields,
    ...configurationFields,
    ...lifecycleFields,
    serviceAccountName: optional(text("The service account of the workspace's pod.")),
    workspaceTemplate: optional(WorkspaceTemplate),
    updateTemplate: optional(UpdateTemplate),
  },
  { description: "The program to deploy, and how.", ...validatedBy(...sourceRules) },
);
export type StackSpec = Static<typeof StackSpec>;
