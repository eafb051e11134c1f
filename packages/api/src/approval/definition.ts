/** Approval: a user's decision about one plan. */
import type { KindDefinition } from "../crd/definition.ts";
import { approvalKind, autoGroup } from "../kinds.ts";
import { ApprovalSpec, ApprovalStatus } from "./spec.ts";

export const approvalDefinition: KindDefinition = {
  kind: approvalKind.kind,
  plural: approvalKind.plural,
  group: autoGroup,
  versions: ["v1alpha1"],
  shortNames: ["appr"],
  description: "A user's decision about the plan of one Update. It is used at most once.",
  fields: { spec: ApprovalSpec, status: ApprovalStatus },
  rules: [
    {
      rule: "has(self.spec)",
      message: "spec: is required; set spec.updateName, updateUid, digest, decision and decidedBy",
    },
  ],
  columns: [
    {
      name: "Update",
      type: "string",
      jsonPath: ".spec.updateName",
      description: "The Update that kept the plan.",
    },
    { name: "Decision", type: "string", jsonPath: ".spec.decision", description: "Approve or Reject." },
    { name: "Decided By", type: "string", jsonPath: ".spec.decidedBy", description: "The user who decided." },
    {
      name: "Used By",
      type: "string",
      jsonPath: ".status.usedBy.updateName",
      description: "The Update that applied the plan.",
    },
    { name: "Reason", type: "string", jsonPath: ".spec.reason", wide: true, description: "Why the user decided so." },
    {
      name: "Age",
      type: "date",
      jsonPath: ".metadata.creationTimestamp",
      description: "The time since the object was created.",
    },
  ],
  conditions: {},
};
