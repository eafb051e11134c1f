/** Stack: a Pulumi stack that is kept in step with its program and its spec. */
import { stackConditions } from "../conditions.ts";
import type { KindDefinition } from "../crd/definition.ts";
import { pulumiGroup, stackKind } from "../kinds.ts";
import { sentence } from "../schema/cel.ts";
import { StackSpec } from "./spec.ts";
import { StackStatus } from "./status.ts";
import { nameLimit, stackWording } from "./wording.ts";

const condition = (type: string, field: string): string => `.status.conditions[?(@.type=="${type}")].${field}`;

export const stackDefinition: KindDefinition = {
  kind: stackKind.kind,
  plural: stackKind.plural,
  group: pulumiGroup,
  versions: ["v1", "v1alpha1"],
  shortNames: ["stk"],
  description: "A Pulumi stack, kept in step with its program and its spec.",
  fields: { spec: StackSpec, status: StackStatus },
  // Objects that are there already must stay editable: their finalizer has to go one day.
  rules: [
    {
      rule: "oldSelf.hasValue() || has(self.spec)",
      optionalOldSelf: true,
      message: `spec: ${sentence(stackWording.noSpec)}`,
    },
    {
      rule: `oldSelf.hasValue() || self.metadata.name.size() <= ${nameLimit}`,
      optionalOldSelf: true,
      message: `metadata.name: ${sentence(stackWording.nameTooLong)}`,
    },
  ],
  columns: [
    { name: "Stack", type: "string", jsonPath: ".spec.stack", wide: true, description: "The Pulumi stack." },
    {
      name: "Last Update",
      type: "string",
      jsonPath: ".status.lastUpdate.state",
      description: "How the last update ended.",
    },
    {
      name: "Age",
      type: "date",
      jsonPath: ".status.lastUpdate.lastResyncTime",
      description: "The time since the last update ended.",
    },
    {
      name: "Last Commit",
      type: "string",
      jsonPath: ".status.lastUpdate.lastAttemptedCommit",
      wide: true,
      description: "The revision that was run last.",
    },
    { name: "Ready", type: "string", jsonPath: condition("Ready", "status"), description: "Whether it is up to date." },
    {
      name: "Reconciling",
      type: "string",
      jsonPath: condition("Reconciling", "reason"),
      description: "What is going on.",
    },
    { name: "Stalled", type: "string", jsonPath: condition("Stalled", "reason"), description: "What is in the way." },
    {
      name: "Permalink",
      type: "string",
      jsonPath: ".status.lastUpdate.permalink",
      description: "The last update in Pulumi Cloud.",
    },
    {
      name: "Type",
      type: "string",
      jsonPath: ".status.lastUpdate.type",
      wide: true,
      description: "The operation that ran last.",
    },
    {
      name: "Changes",
      type: "string",
      jsonPath: ".status.lastUpdate.summary",
      wide: true,
      description: "What it changed, or would change.",
    },
    {
      name: "Message",
      type: "string",
      jsonPath: condition("Stalled", "message"),
      wide: true,
      description: "What is in the way, in words.",
    },
  ],
  conditions: stackConditions,
};
