/** References to values, as used in envRefs, secretsRef and gitAuth. */
import { Type, type Static } from "typebox";

import { isSet, validationText, validatedUnlessInvalidBefore, type CelRule } from "../schema/cel.ts";
import { optional, text } from "../schema/field.ts";
import { stackMessages as messages } from "./messages.ts";

const referenceTypes = ["Literal", "Secret", "ConfigMap", "StackOutput"] as const;
type ReferenceType = (typeof referenceTypes)[number];

/** Types of the Go operator's first version, which would read the environment and files of the operator. */
const rejectedTypes = ["Env", "FS"] as const;

const secret = optional(
  Type.Object(
    {
      name: text("The name of the Secret."),
      key: text("The key in the Secret."),
      namespace: optional(
        text("The namespace of the Secret. Only the Stack's own namespace is allowed, so omit this field."),
      ),
    },
    { description: "The Secret with the value, for type Secret." },
  ),
);

const literalOf = (description: string) => optional(Type.Object({ value: text("The value.") }, { description }));

const rejectedFields = {
  env: optional(
    Type.Object(
      { name: text("The name of the variable.") },
      { description: "Not supported: the API server rejects type Env." },
    ),
  ),
  filesystem: optional(
    Type.Object(
      { path: text("The path of the file.") },
      { description: "Not supported: the API server rejects type FS." },
    ),
  ),
};

const fields = {
  type: text("The source of the value: Literal, Secret, ConfigMap or StackOutput.", { maxLength: 64 }),
  literal: literalOf("The value itself, for type Literal."),
  secret,
  configMap: optional(
    Type.Object(
      { name: text("The name of the ConfigMap."), key: text("The key in the ConfigMap.") },
      { description: "The ConfigMap with the value, for type ConfigMap." },
    ),
  ),
  stack: optional(text("The Stack in the same namespace with the output, for type StackOutput.")),
  output: optional(text("The name of the output, for type StackOutput.")),
  ...rejectedFields,
};

const quoted = (values: readonly string[]): string => values.map((value) => `'${value}'`).join(", ");

/** A rule that applies to one type of reference. */
const ruleFor = (type: ReferenceType, condition: string, message: string): CelRule => ({
  rule: `self.type != '${type}' || (${condition})`,
  message,
});

const secretNamed: CelRule = ruleFor(
  "Secret",
  "has(self.secret) && self.secret.name != '' && self.secret.key != ''",
  validationText(messages.secretIncomplete),
);

const anyType: readonly CelRule[] = [
  {
    rule: `self.type in [${quoted([...referenceTypes, ...rejectedTypes])}]`,
    message: validationText(messages.unknownReferenceType),
    fieldPath: ".type",
  },
  { rule: "self.type != 'Env'", message: validationText(messages.envReference), fieldPath: ".type" },
  { rule: "self.type != 'FS'", message: validationText(messages.fileReference), fieldPath: ".type" },
  ruleFor("Literal", "has(self.literal)", validationText(messages.literalIncomplete)),
  secretNamed,
  ruleFor(
    "ConfigMap",
    "has(self.configMap) && self.configMap.name != '' && self.configMap.key != ''",
    validationText(messages.configMapIncomplete),
  ),
  ruleFor("StackOutput", `${isSet("stack")} && ${isSet("output")}`, validationText(messages.stackOutputIncomplete)),
];

const secretOnly: readonly CelRule[] = [
  { rule: "self.type == 'Secret'", message: validationText(messages.credentialNotSecret), fieldPath: ".type" },
  secretNamed,
];

export const ValueReference = Type.Object(fields, {
  description: "The source of a value.",
  ...validatedUnlessInvalidBefore(...anyType),
});
export type ValueReference = Static<typeof ValueReference>;

const credentialFields = {
  type: text("The source of the value. Only Secret is allowed.", { maxLength: 64 }),
  secret,
  literal: literalOf("Not supported: the API server rejects type Literal for credentials."),
  ...rejectedFields,
};

/** A reference to a credential, which must be in a Secret. */
export const credential = (description: string) =>
  Type.Object(credentialFields, { description, ...validatedUnlessInvalidBefore(...secretOnly) });
