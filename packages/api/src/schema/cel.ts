/** Validation rules that the API server itself evaluates, in the Common Expression Language. */

export interface CelRule {
  /** True for a valid value. `self` is the node that carries the rule. */
  readonly rule: string;
  readonly message: string;
  /** The field to blame, below the node that carries the rule: `.branch`. */
  readonly fieldPath?: string;
  readonly reason?: "FieldValueInvalid" | "FieldValueForbidden" | "FieldValueRequired";
  /** The rule sees creations too: there `oldSelf.hasValue()` is false. */
  readonly optionalOldSelf?: true;
}

export const validatedBy = (...rules: readonly CelRule[]) => ({ "x-kubernetes-validations": rules });

/** True when the optional text field is there and not empty: an empty text means "not set", as in the reference. */
export const given = (field: string): string => `has(self.${field}) && self.${field} != ''`;

/** What is wrong with a value, and what to do about it. One wording serves the API server and the normaliser. */
export interface Wording {
  readonly message: string;
  readonly remedy: string;
}

export const sentence = ({ message, remedy }: Wording): string => `${message}; ${remedy}`;
