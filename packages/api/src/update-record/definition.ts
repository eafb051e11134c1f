/** UpdateRecord: the record of one run. */
import type { KindDefinition } from "../crd/definition.ts";
import { autoGroup, updateRecordKind } from "../kinds.ts";
import { UpdateRecordContent } from "./record.ts";

export const updateRecordDefinition: KindDefinition = {
  kind: updateRecordKind.kind,
  plural: updateRecordKind.plural,
  group: autoGroup,
  versions: ["v1alpha1"],
  shortNames: ["updrec"],
  description: "The record of one run: what it changed, why it was started, who approved it, and how it ended.",
  fields: { record: UpdateRecordContent },
  rules: [{ rule: "has(self.record)", message: "record: is required; the operator writes it at the end of a run" }],
  columns: [
    { name: "Stack", type: "string", jsonPath: ".record.stackName", description: "The Stack that requested the run." },
    { name: "Type", type: "string", jsonPath: ".record.type", description: "The operation." },
    { name: "Result", type: "string", jsonPath: ".record.result", description: "How the run ended." },
    { name: "Revision", type: "string", jsonPath: ".record.revision", wide: true, description: "The revision." },
    {
      name: "Trigger",
      type: "string",
      jsonPath: ".record.trigger",
      wide: true,
      description: "Why the run was started.",
    },
    {
      name: "Approved By",
      type: "string",
      jsonPath: ".record.approval.decidedBy",
      wide: true,
      description: "The user who approved the plan.",
    },
    { name: "Ended", type: "date", jsonPath: ".record.endTime", description: "The time when the run ended." },
  ],
  conditions: {},
};
