/** Update: one operation of Pulumi in a Workspace, once. */
import { updateConditions } from "../conditions.ts";
import type { KindDefinition, PrinterColumn } from "../crd/definition.ts";
import { autoGroup, updateKind } from "../kinds.ts";
import { sentence } from "../schema/cel.ts";
import { immutableWording, UpdateSpec } from "./spec.ts";
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
  description: "One operation of Pulumi: a preview, an update, a refresh or a destroy.",
  fields: { spec: UpdateSpec, status: UpdateStatus },
  rules: [
    // The rules on spec see a change, not its removal.
    { rule: "!has(oldSelf.spec) || has(self.spec)", message: `spec ${sentence(immutableWording)}` },
  ],
  columns: [
    { name: "Workspace", type: "string", jsonPath: ".spec.workspaceName", description: "Where it runs." },
    { name: "Type", type: "string", jsonPath: ".spec.type", wide: true, description: "The operation." },
    { name: "Start Time", type: "date", jsonPath: ".status.startTime", wide: true, description: "When it began." },
    { name: "End Time", type: "date", jsonPath: ".status.endTime", wide: true, description: "When it ended." },
    condition("Progressing", "Whether it is under way."),
    condition("Failed", "Whether it has failed."),
    condition("Complete", "Whether it has ended."),
    { name: "URL", type: "string", jsonPath: ".status.permalink", description: "Its page in Pulumi Cloud." },
    { name: "Stack", type: "string", jsonPath: ".spec.stackName", wide: true, description: "The Pulumi stack." },
    { name: "Changes", type: "string", jsonPath: ".status.summary", wide: true, description: "What it changed." },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp", description: "The time since its creation." },
  ],
  conditions: updateConditions,
};
