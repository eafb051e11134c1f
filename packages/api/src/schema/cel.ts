/** Validation rules in the Common Expression Language (CEL), which the API server evaluates. */

export interface CelRule {
  /** True for a valid value. `self` is the value that the rule is attached to. */
  readonly rule: string;
  readonly message: string;
  /** The invalid field, relative to the value that the rule is attached to: `.branch`. */
  readonly fieldPath?: string;
  readonly reason?: "FieldValueInvalid" | "FieldValueForbidden" | "FieldValueRequired";
  /** The rule is also evaluated on creation, where `oldSelf.hasValue()` is false. */
  readonly optionalOldSelf?: true;
}

export const validatedBy = (...rules: readonly CelRule[]) => ({ "x-kubernetes-validations": rules });

/**
 * Rules that do not apply to a value that has violated them before. Objects from before the rules must stay editable: Kubernetes
 * ensures that for values that have not changed, but until 1.32 not when the status is written. Not for items of lists, which
 * have no former value.
 */
export const validatedUnlessInvalidBefore = (...rules: readonly CelRule[]) =>
  validatedBy(...rules.map(unlessInvalidBefore));

function unlessInvalidBefore({ rule, ...rest }: CelRule): CelRule {
  const before = rule.replaceAll(/\bself\b/g, "oldSelf.value()");
  return { rule: `(${rule}) || (oldSelf.hasValue() && !(${before}))`, ...rest, optionalOldSelf: true };
}

/** True if the optional string field is set and not empty: as in the Go operator, an empty string means "not set". */
export const isSet = (field: string): string => `has(self.${field}) && self.${field} != ''`;

/** What is wrong with a value, and how to fix it. The API server's rules and the normalizer share these texts. */
export interface ValidationMessage {
  readonly message: string;
  readonly remedy: string;
}

export const validationText = ({ message, remedy }: ValidationMessage): string => `${message}; ${remedy}`;
