/** The stack's configuration as one list, merged from all fields that can set it. */
import type { JsonValue } from "../schema/field.ts";
import type { StackSpec } from "../stack/spec.ts";
import { checkName, valueSource, type SecretKey, type ValueSource } from "./reference.ts";
import type { Scope } from "./scope.ts";

type ConfigSource =
  | { readonly kind: "value"; readonly value: Exclude<JsonValue, null> }
  | ({ readonly kind: "secret" } & SecretKey)
  | { readonly kind: "configMap"; readonly name: string; readonly key: string; readonly json: boolean }
  | { readonly kind: "stackOutput"; readonly stack: string; readonly output: string };

export interface ConfigItem {
  readonly key: string;
  /** Whether Pulumi encrypts the value. */
  readonly secret: boolean;
  readonly from: ConfigSource;
}

type Fields = Pick<StackSpec, "config" | "configRef" | "configRefs" | "secrets" | "secretsRef">;
type FieldItem = ConfigItem & { readonly field: string };

export function stackConfig(spec: Fields, scope: Scope): ConfigItem[] {
  const found = new Map<string, FieldItem>();
  for (const item of [...inlineItems(spec, scope), ...configMapItems(spec, scope), ...secretItems(spec, scope)]) {
    checkOnce(item, found.get(item.key), scope);
    found.set(item.key, item);
  }
  const items = [...found.values()].map(({ key, secret, from }) => ({ key, secret, from }));
  return items.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

function checkOnce(item: FieldItem, earlier: FieldItem | undefined, { findings }: Scope): void {
  if (item.key === "") findings.problem(item.field, { message: "has an empty key", remedy: "set a key" });
  // configRef and configRefs may contain the same entry.
  if (!earlier || isSame(earlier, item)) return;
  findings.problem(item.field, {
    message: `sets ${item.key}, which ${earlier.field} also sets`,
    remedy: "remove one of them",
  });
}

const isSame = (one: ConfigItem, other: ConfigItem): boolean =>
  one.secret === other.secret && JSON.stringify(one.from) === JSON.stringify(other.from);

function* inlineItems({ config }: Fields, { findings }: Scope): Iterable<FieldItem> {
  for (const [key, value] of Object.entries(config ?? {})) {
    const field = `spec.config.${key}`;
    if (value === null) findings.problem(field, { message: "has no value", remedy: "set a value, or remove the key" });
    else yield { key, secret: false, from: { kind: "value", value }, field };
  }
}

function* configMapItems(spec: Fields, scope: Scope): Iterable<FieldItem> {
  for (const spelling of ["configRef", "configRefs"] as const) {
    for (const [key, { name, key: dataKey, json = false }] of Object.entries(spec[spelling] ?? {})) {
      const field = `spec.${spelling}.${key}`;
      checkName({ name, key: dataKey }, { field, kind: "ConfigMap" }, scope);
      yield { key, secret: false, from: { kind: "configMap", name, key: dataKey, json }, field };
    }
  }
}

function* secretItems({ secrets, secretsRef }: Fields, scope: Scope): Iterable<FieldItem> {
  if (secrets && Object.keys(secrets).length > 0) {
    scope.findings.advise("spec.secrets", { message: "contains secrets in plain text", remedy: "use secretsRef" });
  }
  for (const [key, value] of Object.entries(secrets ?? {})) {
    yield { key, secret: true, from: { kind: "value", value }, field: `spec.secrets.${key}` };
  }
  for (const [key, reference] of Object.entries(secretsRef ?? {})) {
    const field = `spec.secretsRef.${key}`;
    const from = valueSource(reference, field, scope);
    if (from) yield { key, secret: true, from: configSource(from), field };
  }
}

function configSource(from: ValueSource): ConfigSource {
  if (from.kind === "literal") return { kind: "value", value: from.value };
  return from.kind === "configMap" ? { ...from, json: false } : from;
}
