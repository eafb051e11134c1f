/** Update: one Pulumi operation in a Workspace. */
import { triggerReasonAnnotation } from "../annotations.ts";
import { updateConditions } from "../conditions.ts";
import type { KindDefinition, PrinterColumn } from "../crd/definition.ts";
import { autoGroup, updateKind } from "../kinds.ts";
import { validationText } from "../schema/cel.ts";
import { immutableMessage, UpdateSpec } from "./spec.ts";
import { UpdateStatus } from "./status.ts";

const condition = (type: string, description: string): PrinterColumn => ({
  name: type,
  type: "string",
  jsonPath: `.status.conditions[?(@.type=="${type}")].status`,
  description,
});

export const updateDefinition: KindDefinition = {
  kind: updateKind.kind,
  plural: updateKind.plural,
  group: autoGroup,
  versions: ["v1alpha1"],
  shortNames: ["upd"],
  description: "One Pulumi operation: preview, up, refresh or destroy.",
  fields: { spec: UpdateSpec, status: UpdateStatus },
  rules: [
    // Rules inside spec are not evaluated when spec is removed.
    { rule: "!has(oldSelf.spec) || has(self.spec)", message: `spec ${validationText(immutableMessage)}` },
  ],
  columns: [
    {
      name: "Workspace",
      type: "string",
      jsonPath: ".spec.workspaceName",
      description: "The Workspace in which the operation runs.",
    },
    { name: "Type", type: "string", jsonPath: ".spec.type", wide: true, description: "The type of the operation." },
    {
      name: "Start Time",
      type: "date",
      jsonPath: ".status.startTime",
      wide: true,
      description: "The time when the operation started.",
    },
    {
      name: "End Time",
      type: "date",
      jsonPath: ".status.endTime",
      wide: true,
      description: "The time when the operation finished.",
    },
    condition("Progressing", "Whether the operation is in progress."),
    condition("Failed", "Whether the operation has failed."),
    condition("Complete", "Whether the operation has finished."),
    {
      name: "URL",
      type: "string",
      jsonPath: ".status.permalink",
      description: "The URL of the operation in Pulumi Cloud.",
    },
    { name: "Stack", type: "string", jsonPath: ".spec.stackName", wide: true, description: "The Pulumi stack." },
    {
      name: "Changes",
      type: "string",
      jsonPath: ".status.summary",
      wide: true,
      description: "The changes of the operation.",
    },
    {
      name: "Trigger",
      type: "string",
      jsonPath: `.metadata.annotations.${triggerReasonAnnotation.replaceAll(".", "\\.")}`,
      wide: true,
      description: "Why the Stack requested the operation.",
    },
    {
      name: "Age",
      type: "date",
      jsonPath: ".metadata.creationTimestamp",
      description: "The time since the object was created.",
    },
  ],
  conditions: updateConditions,
};
