/** The spec of an Update: one Pulumi operation, which runs once. */
import { Type, type Static } from "typebox";

import { validationText, validatedBy, type CelRule } from "../schema/cel.ts";
import { flag, int32, int64, listOf, optional, text } from "../schema/field.ts";
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
  timeoutSeconds: optional(
    int64("How long the operation may run, in seconds. After that it is cancelled, and killed if it does not stop.", {
      minimum: 1,
    }),
  ),
  silenceTimeoutSeconds: optional(
    int64("How long the operation may run without any output, in seconds, before it is cancelled.", { minimum: 1 }),
  ),
};

/** Not part of a Stack's template: the Stack sets them where its approval or drift detection requires them, or users do. */
const planFields = {
  previewOnly: optional(flag("Whether a refresh or a destroy only shows what it would change.")),
  clearPendingCreates: optional(
    flag(
      "Whether a refresh removes interrupted creates from the state. Before that, check which of the resources exist: Pulumi forgets them.",
    ),
  ),
  savePlan: optional(
    flag("Whether a preview, or a destroy with previewOnly, keeps its plan, so that exactly this plan can be applied."),
  ),
  applyPlan: optional(
    Type.Object(
      {
        updateName: text("The name of the Update that kept the plan.", { maxLength: 253 }),
        updateUid: text("The UID of that Update.", { maxLength: 64 }),
        digest: text("The digest of the plan, as the status of that Update reports it.", { maxLength: 128 }),
        approvalName: optional(text("The name of the Approval of the plan, if one is required.", { maxLength: 253 })),
      },
      { description: "The plan that an up or a destroy applies. If it no longer applies, nothing is changed." },
    ),
  ),
};

/** An Update documents what was run, so its operation is immutable. Its TTL may change. */
const immutableFields = Object.keys({ ...operation, ...planFields });

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
  { ...operation, ...planFields, ttlAfterCompleted },
  { description: "The operation to run.", ...validatedBy(...immutableFields.map(unchanged)) },
);
export type UpdateSpec = Static<typeof UpdateSpec>;

/** For a Stack's template, where the rules about immutable fields do not apply. */
export const UpdateTemplateSpec = Type.Object({ ...operation, ttlAfterCompleted });
