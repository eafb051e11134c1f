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

/** True if the optional string field is set and not empty: as in the Go operator, an empty string means "not set". */
export const isSet = (field: string): string => `has(self.${field}) && self.${field} != ''`;

/** What is wrong with a value, and how to fix it. The API server's rules and the normalizer share these texts. */
export interface ValidationMessage {
  readonly message: string;
  readonly remedy: string;
}

export const validationText = ({ message, remedy }: ValidationMessage): string => `${message}; ${remedy}`;
