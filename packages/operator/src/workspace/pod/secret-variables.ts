/**
 * Which variables of the workspace's container hold secrets. The agent gets their names, so that it masks their values in
 * everything that it reports. Pure.
 */
import { pulumiContainer } from "@pko/api";
import { secretVariablesVariable } from "@pko/rpc";
import type { Container, PodTemplateSpec } from "kubernetes-types/core/v1";

import { readingOf, type Readings } from "./references.ts";

export function withSecretVariables(template: PodTemplateSpec, readings: Readings): PodTemplateSpec {
  const { spec } = template;
  if (!spec) return template;
  const containers = spec.containers.map((container) => {
    const names = container.name === pulumiContainer ? secretVariablesOf(container, readings) : [];
    if (names.length === 0) return container;
    return { ...container, env: [...(container.env ?? []), { name: secretVariablesVariable, value: names.join(",") }] };
  });
  return { ...template, spec: { ...spec, containers } };
}

function secretVariablesOf({ env = [], envFrom = [] }: Container, readings: Readings): string[] {
  const single = env.flatMap(({ name, valueFrom }) => {
    const { name: secret = "", key } = valueFrom?.secretKeyRef ?? {};
    return key !== undefined && isSecret(secret, key, readings) ? [name] : [];
  });
  const many = envFrom.flatMap(({ prefix = "", secretRef }) => {
    const keys = Object.keys(readingOf(readings, { kind: "Secret", name: secretRef?.name ?? "" })?.found?.data ?? {});
    return keys.filter((key) => isSecret(secretRef?.name ?? "", key, readings)).map((key) => prefix + key);
  });
  return [...new Set([...many, ...single])].toSorted();
}

/** The Secret of a Stack's outputs holds plain outputs as well, and lists the secret ones. */
function isSecret(name: string, key: string, readings: Readings): boolean {
  const { secretKeys } = readingOf(readings, { kind: "Secret", name })?.found ?? {};
  return secretKeys?.includes(key) ?? true;
}
