/** The standard condition of Kubernetes objects. */
import { Type, type Static } from "typebox";

import { choice, int64, keyedBy, listOf, text, time } from "../schema/field.ts";

export const Condition = Type.Object(
  {
    type: text("The type of the condition.", {
      maxLength: 316,
      pattern:
        "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
    }),
    status: choice(["True", "False", "Unknown"], "The status of the condition: True, False or Unknown."),
    reason: text("A machine-readable reason for the condition's last transition, in CamelCase.", {
      minLength: 1,
      maxLength: 1024,
      pattern: "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
    }),
    message: text("A human-readable message with details about the condition.", { maxLength: 32768 }),
    lastTransitionTime: time("The time when the status of the condition last changed."),
    observedGeneration: Type.Optional(
      int64("The generation of the object that the condition is based on.", { minimum: 0 }),
    ),
  },
  { description: "A condition of the object's state." },
);
export type Condition = Static<typeof Condition>;

export const conditionsOf = (types: readonly string[]) =>
  listOf(Condition, `The conditions of the object, by type: ${types.join(", ")}.`, keyedBy("type"));
