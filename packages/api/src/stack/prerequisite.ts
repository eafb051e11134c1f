/** Other Stacks that must have succeeded first. There are two equivalent spellings. */
import { Type, type Static } from "typebox";

import { validationText, validatedBy } from "../schema/cel.ts";
import { keepUnknown, optional, text } from "../schema/field.ts";
import { duration } from "../shared/duration.ts";
import { stackMessages as messages } from "./messages.ts";

const within =
  "The maximum time since the Stack last succeeded, such as 30m. If its last success is older, the operator runs the Stack again.";

export interface Requirement {
  succeededWithinDuration?: string;
}

/** An object in the first spelling, a string in the second: the admission policy and the normalizer check it. */
const requirement = Type.Unsafe<string | Requirement>({
  description: "With name: an object with succeededWithinDuration. With type: the name of the Stack.",
  properties: { succeededWithinDuration: text(within) },
  ...keepUnknown,
});

export const Prerequisite = Type.Object(
  {
    name: optional(text("The name of a Stack in the same namespace that must have succeeded.")),
    requirement: optional(requirement),
    type: optional(
      text("Only Stack is allowed. With it, requirement is the name of the Stack.", {
        maxLength: 64,
        ...validatedBy({ rule: "self == 'Stack'", message: validationText(messages.prerequisiteType) }),
      }),
    ),
    succeededWithinDuration: optional(duration(within)),
  },
  {
    description: "A Stack that must have succeeded.",
    ...validatedBy({
      rule: "has(self.name) || has(self.type)",
      message: validationText(messages.prerequisiteWithoutName),
      reason: "FieldValueRequired",
    }),
  },
);
export type Prerequisite = Static<typeof Prerequisite>;
