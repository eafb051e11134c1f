/** The standard condition of Kubernetes objects. */
import { Type, type Static } from "typebox";

import { choice, int64, keyedBy, listOf, text, time } from "../schema/field.ts";

export const Condition = Type.Object(
  {
    type: text("What the condition is about.", {
      maxLength: 316,
      pattern:
        "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
    }),
    status: choice(["True", "False", "Unknown"], "Whether the condition holds."),
    reason: text("One word for machines that tells why the condition is as it is.", {
      minLength: 1,
      maxLength: 1024,
      pattern: "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
    }),
    message: text("A sentence for people that tells why the condition is as it is.", { maxLength: 32768 }),
    lastTransitionTime: time("When the status of the condition last changed."),
    observedGeneration: Type.Optional(
      int64("The generation of the object that the condition speaks of.", { minimum: 0 }),
    ),
  },
  { description: "One observation about the object." },
);
export type Condition = Static<typeof Condition>;

export const conditionsOf = (types: readonly string[]) =>
  listOf(Condition, `What is known of the object, by type: ${types.join(", ")}.`, keyedBy("type"));
