/** The desired state of a Stack. */
import { Type, type Static } from "typebox";

import { validatedUnlessInvalidBefore } from "../schema/cel.ts";
import { optional, text } from "../schema/field.ts";
import { ReportSettings } from "../shared/report.ts";
import { configurationFields } from "./configuration.ts";
import { controlFields } from "./control.ts";
import { lifecycleFields } from "./lifecycle.ts";
import { PullRequests } from "./pull-requests.ts";
import { sourceFields, sourceRules } from "./source.ts";
import { UpdateTemplate, WorkspaceTemplate } from "./templates.ts";

export const StackSpec = Type.Object(
  {
    stack: text("The name of the Pulumi stack: organization/project/stack, or a shorter form if that is unambiguous."),
    ...sourceFields,
    ...configurationFields,
    ...lifecycleFields,
    ...controlFields,
    report: optional(ReportSettings),
    pullRequests: optional(PullRequests),
    serviceAccountName: optional(text("The service account of the workspace pod.")),
    workspaceTemplate: optional(WorkspaceTemplate),
    updateTemplate: optional(UpdateTemplate),
  },
  { description: "The program to deploy and how to deploy it.", ...validatedUnlessInvalidBefore(...sourceRules) },
);
export type StackSpec = Static<typeof StackSpec>;
