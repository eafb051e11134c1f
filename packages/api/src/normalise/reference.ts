/** References to values, as one closed union. */
import type { Wording } from "../schema/cel.ts";
import type { ValueReference } from "../stack/reference.ts";
import { stackWording as wording } from "../stack/wording.ts";
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

/** Undefined when a problem was found. */
export function valueSourceOf(reference: ValueReference, field: string, scope: Scope): ValueSource | undefined {
  const { literal, configMap, stack, output } = reference;
  switch (reference.type) {
    case "Literal":
      return literal ? { kind: "literal", value: literal.value } : refused(field, wording.literalIncomplete, scope);
    case "Secret":
      return { kind: "secret", ...secretKeyOf(reference, field, scope) };
    case "ConfigMap":
      if (!configMap?.name || !configMap.key) return refused(field, wording.configMapIncomplete, scope);
      checkName(configMap, { field: `${field}.configMap`, kind: "ConfigMap" }, scope);
      return { kind: "configMap", name: configMap.name, key: configMap.key };
    case "StackOutput":
      if (!stack || !output) return refused(field, wording.stackOutputIncomplete, scope);
      checkOtherStack(stack, `${field}.stack`, scope);
      return { kind: "stackOutput", stack, output };
    case "Env":
      return refused(`${field}.type`, wording.envReference, scope);
    case "FS":
      return refused(`${field}.type`, wording.fileReference, scope);
    default:
      return refused(`${field}.type`, wording.unknownReferenceType, scope);
  }
}

type SecretReference = Pick<ValueReference, "type" | "secret">;

/** What it returns after a problem means nothing: nobody uses the form of a spec that has problems. */
export function secretKeyOf({ type, secret }: SecretReference, field: string, scope: Scope): SecretKey {
  if (type !== "Secret") refused(`${field}.type`, wording.credentialNotSecret, scope);
  else if (!secret?.name || !secret.key) refused(field, wording.secretIncomplete, scope);
  else checkName(secret, { field: `${field}.secret`, kind: "Secret" }, scope);
  if (secret?.namespace && secret.namespace !== scope.namespace) {
    refused(`${field}.secret.namespace`, wording.otherNamespace, scope);
  }
  return { name: secret?.name ?? "", key: secret?.key ?? "" };
}

/** A Secret or ConfigMap and its key have names that such objects can have: they end up in paths. */
export function checkName(ref: SecretKey, at: { field: string; kind: "Secret" | "ConfigMap" }, scope: Scope): void {
  if (!isObjectName(ref.name)) {
    refused(`${at.field}.name`, { message: `is not the name of a ${at.kind}`, remedy: "correct the name" }, scope);
  }
  if (!isDataKey(ref.key)) {
    refused(`${at.field}.key`, { message: `is not a key of a ${at.kind}`, remedy: "correct the key" }, scope);
  }
}

export function checkOtherStack(name: string, field: string, scope: Scope): void {
  if (name === scope.name) refused(field, { message: "is this Stack itself", remedy: "name another Stack" }, scope);
  else if (!isObjectName(name)) {
    refused(field, { message: "is not the name of a Stack", remedy: "correct the name" }, scope);
  }
}

function refused(field: string, what: Wording, scope: Scope): undefined {
  scope.findings.problem(field, what);
}
