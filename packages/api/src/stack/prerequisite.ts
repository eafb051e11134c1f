/** Other Stacks that must have succeeded first. Two spellings are accepted, and mean the same. */
import { Type, type Static } from "typebox";

import { sentence, validatedBy } from "../schema/cel.ts";
import { keepUnknown, optional, text } from "../schema/field.ts";
import { duration } from "../shared/duration.ts";
import { stackWording as wording } from "./wording.ts";

const within = "How recently the Stack must have succeeded, such as 30m; it is run again when that is too long ago.";

export interface Requirement {
  succeededWithinDuration?: string;
}

/** An object in the first spelling, a name in the second: so it has no type, and what is in it is checked elsewhere. */
const requirement = Type.Unsafe<string | Requirement>({
  description: "With name: an object that holds succeededWithinDuration. With type: Stack: the name of the Stack.",
  properties: { succeededWithinDuration: text(within) },
  ...keepUnknown,
});

export const Prerequisite = Type.Object(
  {
    name: optional(text("The name of the Stack that must have succeeded, in the same namespace.")),
    requirement: optional(requirement),
    type: optional(
      text("The second spelling, with requirement as a name: always Stack.", {
        maxLength: 64,
        ...validatedBy({ rule: "self == 'Stack'", message: sentence(wording.prerequisiteType) }),
      }),
    ),
    succeededWithinDuration: optional(duration(within)),
  },
  {
    description: "One Stack that must have succeeded.",
    ...validatedBy({
      rule: "has(self.name) || has(self.type)",
      message: sentence(wording.prerequisiteWithoutName),
      reason: "FieldValueRequired",
    }),
  },
);
export type Prerequisite = Static<typeof Prerequisite>;
