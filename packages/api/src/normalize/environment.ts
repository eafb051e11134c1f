/** The environment of the Pulumi CLI: single variables, and ConfigMaps and Secrets whose keys become variables. */
import type { StackSpec } from "../stack/spec.ts";
import { valueSource, type ValueSource } from "./reference.ts";
import { isEnvName, isObjectName } from "./rules.ts";
import type { Scope } from "./scope.ts";

export interface EnvVariable {
  readonly name: string;
  readonly from: ValueSource;
}

export interface EnvBundle {
  readonly kind: "configMap" | "secret";
  readonly name: string;
}

type Fields = Pick<StackSpec, "backend" | "accessTokenSecret" | "envRefs" | "envs" | "envSecrets">;

/** Sorted by name, so that the same spec always gives the same pod. envRefs takes precedence over dedicated fields. */
export function stackEnv(spec: Fields, scope: Scope): EnvVariable[] {
  const variables = new Map<string, ValueSource>(wellKnown(spec, scope));
  for (const [name, reference] of Object.entries(spec.envRefs ?? {})) {
    const field = `spec.envRefs.${name}`;
    if (!isEnvName(name)) {
      const remedy = "use only printable ASCII characters and no equals sign";
      scope.findings.problem(field, { message: "is not a valid name of an environment variable", remedy });
    }
    if (variables.has(name)) {
      const remedy = `remove ${fieldOf[name]} or this entry`;
      scope.findings.advise(field, { message: `takes precedence over ${fieldOf[name]}`, remedy });
    }
    const from = valueSource(reference, field, scope);
    if (from) variables.set(name, from);
  }
  return [...variables].map(([name, from]) => ({ name, from })).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

const fieldOf: Readonly<Record<string, string>> = {
  PULUMI_BACKEND_URL: "spec.backend",
  PULUMI_ACCESS_TOKEN: "spec.accessTokenSecret",
};

function* wellKnown({ backend, accessTokenSecret }: Fields, { findings }: Scope): Iterable<[string, ValueSource]> {
  if (backend) yield ["PULUMI_BACKEND_URL", { kind: "literal", value: backend }];
  if (!accessTokenSecret) return;
  const remedy = "use envRefs.PULUMI_ACCESS_TOKEN";
  findings.advise("spec.accessTokenSecret", { message: "is deprecated", remedy });
  if (!isObjectName(accessTokenSecret)) {
    findings.problem("spec.accessTokenSecret", {
      message: "is not a valid name of a Secret",
      remedy: "correct the name",
    });
  }
  yield ["PULUMI_ACCESS_TOKEN", { kind: "secret", name: accessTokenSecret, key: "accessToken" }];
}

/** In the order of the spec: if several contain the same key, the last takes precedence. */
export function stackEnvFrom({ envs, envSecrets }: Fields, scope: Scope): EnvBundle[] {
  return [
    ...bundles("configMap", { field: "spec.envs", names: envs ?? [] }, scope),
    ...bundles("secret", { field: "spec.envSecrets", names: envSecrets ?? [] }, scope),
  ];
}

type Listed = { readonly field: string; readonly names: readonly string[] };

function bundles(kind: EnvBundle["kind"], { field, names }: Listed, { findings }: Scope): EnvBundle[] {
  if (names.length > 0) findings.advise(field, { message: "is deprecated", remedy: "use envRefs" });
  for (const [index, name] of names.entries()) {
    const what = `is not a valid name of a ${kind === "secret" ? "Secret" : "ConfigMap"}`;
    if (!isObjectName(name)) findings.problem(`${field}[${index}]`, { message: what, remedy: "correct the name" });
  }
  return names.map((name) => ({ kind, name }));
}
