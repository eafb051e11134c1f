/** References to values: the one form that envRefs, secretsRef and gitAuth share. */
import { Type, type Static } from "typebox";

import { given, sentence, validatedBy, type CelRule } from "../schema/cel.ts";
import { optional, text } from "../schema/field.ts";
import { stackWording as wording } from "./wording.ts";

const referenceTypes = ["Literal", "Secret", "ConfigMap", "StackOutput"] as const;
type ReferenceType = (typeof referenceTypes)[number];

/** Types of the first generation of the reference, which read the operator's own process. */
const refusedTypes = ["Env", "FS"] as const;

const secret = optional(
  Type.Object(
    {
      name: text("The name of the Secret."),
      key: text("The key within the Secret."),
      namespace: optional(text("The Stack's own namespace; no other is allowed, so leave it out.")),
    },
    { description: "The Secret that holds the value, for type Secret." },
  ),
);

const literalOf = (description: string) => optional(Type.Object({ value: text("The value.") }, { description }));

const refusedFields = {
  env: optional(
    Type.Object({ name: text("The name of the variable.") }, { description: "Refused, with type Env: see type." }),
  ),
  filesystem: optional(
    Type.Object({ path: text("The path of the file.") }, { description: "Refused, with type FS: see type." }),
  ),
};

const fields = {
  type: text("Where the value comes from: Literal, Secret, ConfigMap or StackOutput.", { maxLength: 64 }),
  literal: literalOf("The value itself, for type Literal."),
  secret,
  configMap: optional(
    Type.Object(
      { name: text("The name of the ConfigMap."), key: text("The key within the ConfigMap.") },
      { description: "The ConfigMap that holds the value, for type ConfigMap." },
    ),
  ),
  stack: optional(text("The Stack in the same namespace whose output is taken, for type StackOutput.")),
  output: optional(text("The output to take, for type StackOutput.")),
  ...refusedFields,
};

const quoted = (values: readonly string[]): string => values.map((value) => `'${value}'`).join(", ");

/** For a value of this type, `demand` must hold. */
const demands = (type: ReferenceType, demand: string, message: string): CelRule => ({
  rule: `self.type != '${type}' || (${demand})`,
  message,
});

const secretNamed: CelRule = demands(
  "Secret",
  "has(self.secret) && self.secret.name != '' && self.secret.key != ''",
  sentence(wording.secretIncomplete),
);

const anyType: readonly CelRule[] = [
  {
    rule: `self.type in [${quoted([...referenceTypes, ...refusedTypes])}]`,
    message: sentence(wording.unknownReferenceType),
    fieldPath: ".type",
  },
  { rule: "self.type != 'Env'", message: sentence(wording.envReference), fieldPath: ".type" },
  { rule: "self.type != 'FS'", message: sentence(wording.fileReference), fieldPath: ".type" },
  demands("Literal", "has(self.literal)", sentence(wording.literalIncomplete)),
  secretNamed,
  demands(
    "ConfigMap",
    "has(self.configMap) && self.configMap.name != '' && self.configMap.key != ''",
    sentence(wording.configMapIncomplete),
  ),
  demands("StackOutput", `${given("stack")} && ${given("output")}`, sentence(wording.stackOutputIncomplete)),
];

const secretOnly: readonly CelRule[] = [
  { rule: "self.type == 'Secret'", message: sentence(wording.credentialNotSecret), fieldPath: ".type" },
  secretNamed,
];

export const ValueReference = Type.Object(fields, {
  description: "Where one value comes from.",
  ...validatedBy(...anyType),
});
export type ValueReference = Static<typeof ValueReference>;

const credentialFields = {
  type: text("Where the value comes from: always Secret.", { maxLength: 64 }),
  secret,
  literal: literalOf("Refused, with type Literal: see type."),
  ...refusedFields,
};

/** A credential: the same form, of which type Secret alone is allowed. */
export const credential = (description: string) =>
  Type.Object(credentialFields, { description, ...validatedBy(...secretOnly) });
