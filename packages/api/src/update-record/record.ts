/** The content of an UpdateRecord: what is worth knowing about a run after its pod and its Update are gone. */
import { Type, type Static } from "typebox";

import { validationText, validatedBy } from "../schema/cel.ts";
import { choice, flag, int64, mapOf, optional, text, time } from "../schema/field.ts";
import { updateTypes } from "../update/spec.ts";

const immutable = { message: "is immutable", remedy: "the operator writes it once, at the end of the run" };

const name = (description: string) => text(description, { maxLength: 253 });

const Approved = Type.Object(
  {
    approvalName: name("The name of the Approval."),
    decidedBy: text("The user who approved the plan.", { maxLength: 1024 }),
    time: optional(time("The time of the decision.")),
    reason: optional(text("Why the user approved it.", { maxLength: 1024 })),
  },
  { description: "The Approval that the run used." },
);

const Omitted = Type.Object(
  {
    events: int64("The number of events that did not fit.", { minimum: 0 }),
    resources: int64("The number of resources that did not fit.", { minimum: 0 }),
    values: int64("The number of old and new values of properties that did not fit.", { minimum: 0 }),
    dependencies: optional(int64("The number of dependencies between resources that did not fit.", { minimum: 0 })),
    inputs: optional(int64("The number of inputs that did not fit.", { minimum: 0 })),
  },
  { description: "What the record does not contain, because it is limited to 64 KiB." },
);

export const UpdateRecordContent = Type.Object(
  {
    updateName: name("The name of the Update."),
    updateUid: text("The UID of the Update.", { maxLength: 64 }),
    stackName: optional(name("The name of the Stack that requested the run.")),
    workspaceName: optional(name("The name of the Workspace in which the run took place.")),
    pulumiStack: text("The Pulumi stack.", { maxLength: 512 }),
    projectName: optional(text("The Pulumi project.", { maxLength: 512 })),
    type: choice([...updateTypes], "The operation: preview, up, refresh or destroy."),
    previewOnly: optional(flag("Whether a refresh or a destroy only showed what it would change.")),
    result: choice(["succeeded", "failed", "cancelled", "interrupted"], "How the run ended."),
    message: optional(text("Details about the result, such as the error.", { maxLength: 8192 })),
    errorClass: optional(text("The class of the failure.", { maxLength: 64 })),
    startTime: time("The time when the run started."),
    endTime: time("The time when the run ended."),
    revision: optional(text("The revision of the program, such as a Git commit.", { maxLength: 512 })),
    trigger: optional(text("Why the run was started.", { maxLength: 1024 })),
    changes: optional(mapOf(int64("A number of resources.", { minimum: 0 }), "The number of resources by operation.")),
    approval: optional(Approved),
    versions: optional(
      mapOf(text("A version.", { maxLength: 128 }), "The versions of the operator, the agent and the Pulumi CLI."),
    ),
    inputs: optional(
      mapOf(
        text("A digest.", { maxLength: 128 }),
        "Digests of the inputs: two runs with the same digest had the same input. No secret value can be guessed from them.",
      ),
    ),
    permalink: optional(text("The URL of the run in Pulumi Cloud.", { maxLength: 2048 })),
    content: optional(
      text("The events of the run and the resources of the stack: JSON, compressed with gzip, in base64.", {
        maxLength: 64 * 1024,
      }),
    ),
    omitted: optional(Omitted),
  },
  {
    description: "The record of one run. Secrets are masked.",
    ...validatedBy({ rule: "self == oldSelf", message: validationText(immutable) }),
  },
);
export type UpdateRecordContent = Static<typeof UpdateRecordContent>;
