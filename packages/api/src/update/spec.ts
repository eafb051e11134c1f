/** What an Update asks for: one operation of Pulumi, once. */
import { Type, type Static } from "typebox";

import { sentence, validatedBy, type CelRule } from "../schema/cel.ts";
import { flag, int32, listOf, optional, text } from "../schema/field.ts";
import { duration } from "../shared/duration.ts";

export const updateTypes = ["preview", "up", "refresh", "destroy"] as const;
export type UpdateType = (typeof updateTypes)[number];

// The bounds let the API server compare old and new: far above any stack that Pulumi could still handle.
const urns = (description: string) => listOf(Type.String({ maxLength: 4096 }), description, { maxItems: 10_000 });

const operation = {
  workspaceName: optional(text("The Workspace to run in.")),
  stackName: optional(
    text("The Pulumi stack to work on: one that the Workspace lists, or, when it lists none, any stack that exists."),
  ),
  type: optional(text("The operation: preview, up, refresh or destroy.")),
  parallel: optional(int32("How many resources to work on at once; 1 means one after another.")),
  message: optional(text("A message to record with the operation.")),
  expectNoChanges: optional(flag("Whether any change is a failure.")),
  expectNoRefreshChanges: optional(
    flag("Whether an up stops, before it changes anything, when the refresh before it finds changes."),
  ),
  replace: optional(urns("URNs of resources to replace.")),
  target: optional(urns("URNs of the only resources to work on.")),
  targetDependents: optional(flag("Whether resources that depend on the targets are worked on too.")),
  refresh: optional(flag("Whether to refresh the state before the operation.")),
  continueOnError: optional(flag("Whether to go on with other resources after one has failed.")),
  remove: optional(flag("Whether to remove the Pulumi stack once it is destroyed.")),
  runProgram: optional(flag("Whether to run the program for a refresh or a destroy.")),
};

/** A run happens once: its object tells what was run. How long the object is kept may change. */
const immutableFields = Object.keys(operation);

export const immutableWording = {
  message: "cannot change once the Update exists",
  remedy: "create another Update",
};

const unchanged = (field: string): CelRule => ({
  rule: `has(self.${field}) == has(oldSelf.${field}) && (!has(self.${field}) || self.${field} == oldSelf.${field})`,
  message: sentence(immutableWording),
  fieldPath: `.${field}`,
  reason: "FieldValueForbidden",
});

const ttlAfterCompleted = optional(duration("How long the object is kept after the operation has ended."));

export const UpdateSpec = Type.Object(
  { ...operation, ttlAfterCompleted },
  { description: "The operation to run.", ...validatedBy(...immutableFields.map(unchanged)) },
);
export type UpdateSpec = Static<typeof UpdateSpec>;

/** As in a Stack's template, where the rules on change do not apply. */
export const UpdateTemplateSpec = Type.Object({ ...operation, ttlAfterCompleted });
