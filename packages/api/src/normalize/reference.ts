/** References to values as a closed union. */
import type { ValidationMessage } from "../schema/cel.ts";
import type { ValueReference } from "../stack/reference.ts";
import { stackMessages as messages } from "../stack/messages.ts";
import { isDataKey, isObjectName } from "./rules.ts";
import type { Scope } from "./scope.ts";

export interface SecretKey {
  readonly name: string;
  readonly key: string;
}

export type ValueSource =
  | { readonly kind: "literal"; readonly value: string }
  | ({ readonly kind: "secret" } & SecretKey)
  | { readonly kind: "configMap"; readonly name: string; readonly key: string }
  | { readonly kind: "stackOutput"; readonly stack: string; readonly output: string };

/** Undefined if there is a problem. */
export function valueSource(reference: ValueReference, field: string, scope: Scope): ValueSource | undefined {
  const { literal, configMap, stack, output } = reference;
  switch (reference.type) {
    case "Literal":
      return literal ? { kind: "literal", value: literal.value } : reject(field, messages.literalIncomplete, scope);
    case "Secret":
      return { kind: "secret", ...secretKeyIn(reference, field, scope) };
    case "ConfigMap":
      if (!configMap?.name || !configMap.key) return reject(field, messages.configMapIncomplete, scope);
      checkName(configMap, { field: `${field}.configMap`, kind: "ConfigMap" }, scope);
      return { kind: "configMap", name: configMap.name, key: configMap.key };
    case "StackOutput":
      if (!stack || !output) return reject(field, messages.stackOutputIncomplete, scope);
      checkOtherStack(stack, `${field}.stack`, scope);
      return { kind: "stackOutput", stack, output };
    case "Env":
      return reject(`${field}.type`, messages.envReference, scope);
    case "FS":
      return reject(`${field}.type`, messages.fileReference, scope);
    default:
      return reject(`${field}.type`, messages.unknownReferenceType, scope);
  }
}

type SecretReference = Pick<ValueReference, "type" | "secret">;

/** After a problem, the return value is a placeholder: the normal form of an invalid spec is never used. */
export function secretKeyIn({ type, secret }: SecretReference, field: string, scope: Scope): SecretKey {
  if (type !== "Secret") reject(`${field}.type`, messages.credentialNotSecret, scope);
  else if (!secret?.name || !secret.key) reject(field, messages.secretIncomplete, scope);
  else checkName(secret, { field: `${field}.secret`, kind: "Secret" }, scope);
  if (secret?.namespace && secret.namespace !== scope.namespace) {
    reject(`${field}.secret.namespace`, messages.otherNamespace, scope);
  }
  return { name: secret?.name ?? "", key: secret?.key ?? "" };
}

/** Checks the name and key of a Secret or ConfigMap, because they become parts of file paths. */
export function checkName(ref: SecretKey, at: { field: string; kind: "Secret" | "ConfigMap" }, scope: Scope): void {
  if (!isObjectName(ref.name)) {
    reject(`${at.field}.name`, { message: `is not a valid name of a ${at.kind}`, remedy: "correct the name" }, scope);
  }
  if (!isDataKey(ref.key)) {
    reject(`${at.field}.key`, { message: `is not a valid key of a ${at.kind}`, remedy: "correct the key" }, scope);
  }
}

export function checkOtherStack(name: string, field: string, scope: Scope): void {
  if (name === scope.name)
    reject(field, { message: "refers to this Stack itself", remedy: "set another Stack" }, scope);
  else if (!isObjectName(name)) {
    reject(field, { message: "is not a valid name of a Stack", remedy: "correct the name" }, scope);
  }
}

function reject(field: string, what: ValidationMessage, scope: Scope): undefined {
  scope.findings.problem(field, what);
}
