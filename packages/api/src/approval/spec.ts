/** The spec and status of an Approval. */
import { Type, type Static } from "typebox";

import { validationText, validatedBy } from "../schema/cel.ts";
import { choice, optional, text, time } from "../schema/field.ts";

const immutable = { message: "is immutable", remedy: "create a new Approval" };

export const ApprovalSpec = Type.Object(
  {
    updateName: text("The name of the Update that kept the plan.", { minLength: 1, maxLength: 253 }),
    updateUid: text("The UID of that Update.", { minLength: 1, maxLength: 64 }),
    digest: text("The digest of the plan, as the status of that Update reports it.", { minLength: 1, maxLength: 128 }),
    decision: choice(["Approve", "Reject"], "The decision: Approve or Reject."),
    decidedBy: text("The name of the user who creates the Approval, as the API server knows it.", {
      minLength: 1,
      maxLength: 1024,
    }),
    reason: optional(text("Why the user decided so.", { maxLength: 1024 })),
  },
  {
    description: "A decision about exactly one plan.",
    ...validatedBy({ rule: "self == oldSelf", message: validationText(immutable) }),
  },
);
export type ApprovalSpec = Static<typeof ApprovalSpec>;

export const ApprovalStatus = Type.Object(
  {
    usedBy: optional(
      Type.Object(
        {
          updateName: text("The name of the Update that applies the plan."),
          updateUid: text("The UID of that Update."),
          time: time("The time when the Update was allowed to start."),
        },
        { description: "The Update that has used the Approval. An Approval is used once." },
      ),
    ),
  },
  { description: "The observed state of the Approval." },
);
export type ApprovalStatus = Static<typeof ApprovalStatus>;
