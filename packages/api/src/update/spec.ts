/** The spec of an Update: one Pulumi operation, which runs once. */
import { Type, type Static } from "typebox";

import { validationText, validatedBy, type CelRule } from "../schema/cel.ts";
import { flag, int32, listOf, optional, text } from "../schema/field.ts";
import { duration } from "../shared/duration.ts";

export const updateTypes = ["preview", "up", "refresh", "destroy"] as const;
export type UpdateType = (typeof updateTypes)[number];

// The API server compares old and new values only if their size is bounded. Pulumi cannot handle stacks of this size.
const urns = (description: string) => listOf(Type.String({ maxLength: 4096 }), description, { maxItems: 10_000 });

const operation = {
  workspaceName: optional(text("The name of the Workspace in which to run the operation.")),
  stackName: optional(
    text(
      "The name of the Pulumi stack. If the Workspace lists stacks, it must be one of them; otherwise, any existing stack.",
    ),
  ),
  type: optional(text("The operation: preview, up, refresh or destroy.")),
  parallel: optional(int32("The number of resource operations to run in parallel; 1 for no parallelism.")),
  message: optional(text("A message to store with the operation.")),
  expectNoChanges: optional(flag("Whether the operation fails if there are any changes.")),
  expectNoRefreshChanges: optional(
    flag("Whether an up fails before it changes anything if the refresh finds changes."),
  ),
  replace: optional(urns("URNs of resources to replace.")),
  target: optional(urns("URNs of resources. If set, the operation applies only to them.")),
  targetDependents: optional(flag("Whether the operation also applies to resources that depend on the targets.")),
  refresh: optional(flag("Whether to refresh the state before the operation.")),
  continueOnError: optional(flag("Whether to continue with other resources after one has failed.")),
  remove: optional(flag("Whether to remove the Pulumi stack after a destroy.")),
  runProgram: optional(flag("Whether to run the program also for a refresh or a destroy.")),
};

/** An Update documents what was run, so its operation is immutable. Its TTL may change. */
const immutableFields = Object.keys(operation);

export const immutableMessage = {
  message: "is immutable",
  remedy: "create a new Update",
};

const unchanged = (field: string): CelRule => ({
  rule: `has(self.${field}) == has(oldSelf.${field}) && (!has(self.${field}) || self.${field} == oldSelf.${field})`,
  message: validationText(immutableMessage),
  fieldPath: `.${field}`,
  reason: "FieldValueForbidden",
});

const ttlAfterCompleted = optional(duration("The time to keep the object after the operation has finished."));

export const UpdateSpec = Type.Object(
  { ...operation, ttlAfterCompleted },
  { description: "The operation to run.", ...validatedBy(...immutableFields.map(unchanged)) },
);
export type UpdateSpec = Static<typeof UpdateSpec>;

/** For a Stack's template, where the rules about immutable fields do not apply. */
export const UpdateTemplateSpec = Type.Object({ ...operation, ttlAfterCompleted });
