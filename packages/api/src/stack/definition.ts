/** Stack: a Pulumi stack that the operator keeps up to date with its program and spec. */
import { stackConditions } from "../conditions.ts";
import type { KindDefinition } from "../crd/definition.ts";
import { pulumiGroup, stackKind } from "../kinds.ts";
import { validationText } from "../schema/cel.ts";
import { StackSpec } from "./spec.ts";
import { StackStatus } from "./status.ts";
import { nameLimit, stackMessages } from "./messages.ts";

const condition = (type: string, field: string): string => `.status.conditions[?(@.type=="${type}")].${field}`;

export const stackDefinition: KindDefinition = {
  kind: stackKind.kind,
  plural: stackKind.plural,
  group: pulumiGroup,
  versions: ["v1", "v1alpha1"],
  shortNames: ["stk"],
  description: "A Pulumi stack that the operator keeps up to date with its program and spec.",
  fields: { spec: StackSpec, status: StackStatus },
  // Existing objects must stay editable, so that their finalizer can be removed.
  rules: [
    {
      rule: "oldSelf.hasValue() || has(self.spec)",
      optionalOldSelf: true,
      message: `spec: ${validationText(stackMessages.noSpec)}`,
    },
    {
      rule: `oldSelf.hasValue() || self.metadata.name.size() <= ${nameLimit}`,
      optionalOldSelf: true,
      message: `metadata.name: ${validationText(stackMessages.nameTooLong)}`,
    },
  ],
  columns: [
    { name: "Stack", type: "string", jsonPath: ".spec.stack", wide: true, description: "The Pulumi stack." },
    {
      name: "Last Update",
      type: "string",
      jsonPath: ".status.lastUpdate.state",
      description: "The result of the last update.",
    },
    {
      name: "Age",
      type: "date",
      jsonPath: ".status.lastUpdate.lastResyncTime",
      description: "The time since the last update finished.",
    },
    {
      name: "Last Commit",
      type: "string",
      jsonPath: ".status.lastUpdate.lastAttemptedCommit",
      wide: true,
      description: "The source revision of the last attempt.",
    },
    {
      name: "Ready",
      type: "string",
      jsonPath: condition("Ready", "status"),
      description: "Whether the stack is up to date.",
    },
    {
      name: "Reconciling",
      type: "string",
      jsonPath: condition("Reconciling", "reason"),
      description: "Why the stack is being reconciled.",
    },
    {
      name: "Stalled",
      type: "string",
      jsonPath: condition("Stalled", "reason"),
      description: "Why the stack is stalled.",
    },
    {
      name: "Permalink",
      type: "string",
      jsonPath: ".status.lastUpdate.permalink",
      description: "The URL of the last update in Pulumi Cloud.",
    },
    {
      name: "Failure",
      type: "string",
      jsonPath: ".status.lastUpdate.failure",
      description: "Why the last update failed: the class of the failure.",
    },
    {
      name: "Suspended",
      type: "boolean",
      jsonPath: ".spec.suspend",
      wide: true,
      description: "Whether the Stack is suspended by its spec.",
    },
    {
      name: "Type",
      type: "string",
      jsonPath: ".status.lastUpdate.type",
      wide: true,
      description: "The type of the last operation.",
    },
    {
      name: "Changes",
      type: "string",
      jsonPath: ".status.lastUpdate.summary",
      wide: true,
      description: "The changes of the last operation.",
    },
    {
      name: "Message",
      type: "string",
      jsonPath: condition("Ready", "message"),
      wide: true,
      description: "Why the stack is ready or not, in detail.",
    },
  ],
  conditions: stackConditions,
};
