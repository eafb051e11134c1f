/** The Secrets and ConfigMaps that a pod reads, which part of the pod reads them, and whether they have changed. Pure. */
import { missingKey, missingObject } from "@pko/api";
import type { Container, PodSpec, Volume } from "kubernetes-types/core/v1";

import { contentHash } from "../../shared/digest.ts";

type ReferenceKind = "Secret" | "ConfigMap";

export interface Reference {
  readonly kind: ReferenceKind;
  readonly name: string;
  /** Undefined for all keys. */
  readonly keys?: readonly string[];
  readonly optional: boolean;
  /** The part of the pod that reads it, for messages. */
  readonly reader: string;
}

/** An object that was read. */
export interface Reading {
  readonly kind: ReferenceKind;
  readonly name: string;
  /** Of the object when it was read: `versionOf`. */
  readonly version?: string;
  /** Undefined if the object does not exist. */
  readonly found?: {
    readonly uid: string;
    readonly data: Readonly<Record<string, string>>;
    /** Set if only some keys of a Secret are secret. */
    readonly secretKeys?: readonly string[];
  };
}

/** In the order of the pod's fields. The API server rejects empty names. */
export function referencesOf(spec: PodSpec): Reference[] {
  const containers = [...(spec.initContainers ?? []), ...spec.containers];
  const all = [...containers.flatMap(referencesOfContainer), ...(spec.volumes ?? []).flatMap(referencesOfVolume)];
  return all.filter(({ name }) => name !== "");
}

function referencesOfContainer({ name: container, env = [], envFrom = [] }: Container): Reference[] {
  const single = env.flatMap(({ name: variable, valueFrom }): Reference[] => {
    const reader = `the variable ${variable} of the container ${container}`;
    const { secretKeyRef: secret, configMapKeyRef: configMap } = valueFrom ?? {};
    return [
      ...(secret ? [{ kind: "Secret" as const, ...keyed(secret), reader }] : []),
      ...(configMap ? [{ kind: "ConfigMap" as const, ...keyed(configMap), reader }] : []),
    ];
  });
  const many = envFrom.flatMap(({ secretRef, configMapRef }): Reference[] => {
    const reader = `envFrom of the container ${container}`;
    return [
      ...(secretRef ? [{ kind: "Secret" as const, ...whole(secretRef), reader }] : []),
      ...(configMapRef ? [{ kind: "ConfigMap" as const, ...whole(configMapRef), reader }] : []),
    ];
  });
  return [...many, ...single];
}

interface Selector {
  readonly name?: string;
  readonly optional?: boolean;
}

const whole = ({ name = "", optional = false }: Selector) => ({ name, optional });
const keyed = (selector: Selector & { readonly key: string }) => ({ ...whole(selector), keys: [selector.key] });

interface Items {
  readonly items?: readonly { readonly key: string }[];
}
const items = ({ items: list }: Items) => (list && list.length > 0 ? { keys: list.map(({ key }) => key) } : {});

function referencesOfVolume({ name: volume, secret, configMap, projected }: Volume): Reference[] {
  const reader = `the volume ${volume}`;
  // Our own certificate is renewed in place: the agent reloads it.
  const own = volume === "agent-tls";
  const sources = projected?.sources ?? [];
  const inSecrets = sources.flatMap((source) => source.secret ?? []);
  const inConfigMaps = sources.flatMap((source) => source.configMap ?? []);
  return [
    ...(secret && !own ? [referenceTo("Secret", { ...secret, name: secret.secretName ?? "" }, reader)] : []),
    ...(configMap ? [referenceTo("ConfigMap", configMap, reader)] : []),
    ...inSecrets.map((each) => referenceTo("Secret", each, reader)),
    ...inConfigMaps.map((each) => referenceTo("ConfigMap", each, reader)),
  ];
}

function referenceTo(kind: ReferenceKind, source: Selector & Items, reader: string): Reference {
  return { kind, ...whole(source), ...items(source), reader };
}

export type Readings = readonly Reading[];

export const readingOf = (readings: Readings, { kind, name }: Pick<Reference, "kind" | "name">): Reading | undefined =>
  readings.find((reading) => reading.kind === kind && reading.name === name);

/** Sentences about objects and keys that the pod would wait for. */
export function missingReferences(references: readonly Reference[], readings: Readings): string[] {
  const sentences = references.flatMap((reference): string[] => {
    const { kind, name, keys = [], optional, reader } = reference;
    const found = readingOf(readings, reference)?.found;
    if (optional) return [];
    if (!found) return [missingObject(`${kind} ${name}`, reader)];
    return keys
      .filter((key) => !Object.hasOwn(found.data, key))
      .map((key) => missingKey(`${kind} ${name}`, { key, user: reader }));
  });
  return [...new Set(sentences)];
}

/** It contains the UID of each object, so that a reader of pods without access to Secrets cannot guess values by hashing. */
export function hashReferences(references: readonly Reference[], readings: Readings): string {
  const used = references.map((reference) => {
    const found = readingOf(readings, reference)?.found;
    const { kind, name, keys } = reference;
    if (!found) return [kind, name, null];
    const names = keys ?? Object.keys(found.data).toSorted();
    return [kind, name, found.uid, names.map((key) => [key, found.data[key] ?? null])];
  });
  return contentHash(used);
}

/** The value of a container's variable, if it is known: a literal, or from an object that was read. */
export function valueOfVariable(container: Container, variable: string, readings: Readings): string | undefined {
  const own = container.env?.findLast(({ name }) => name === variable);
  if (own) return own.value ?? valueFrom(own.valueFrom, readings);
  // The last one that has the key takes precedence.
  for (const { prefix = "", secretRef, configMapRef } of (container.envFrom ?? []).toReversed()) {
    if (!variable.startsWith(prefix)) continue;
    const kind = secretRef ? "Secret" : "ConfigMap";
    const found = readingOf(readings, { kind, name: (secretRef ?? configMapRef)?.name ?? "" })?.found;
    const value = found?.data[variable.slice(prefix.length)];
    if (value !== undefined) return value;
  }
  return undefined;
}

type ValueFrom = NonNullable<NonNullable<Container["env"]>[number]["valueFrom"]>;

function valueFrom(from: ValueFrom | undefined, readings: Readings): string | undefined {
  const { secretKeyRef: secret, configMapKeyRef: configMap } = from ?? {};
  if (secret) return readingOf(readings, { kind: "Secret", name: secret.name ?? "" })?.found?.data[secret.key];
  if (configMap)
    return readingOf(readings, { kind: "ConfigMap", name: configMap.name ?? "" })?.found?.data[configMap.key];
  return undefined;
}
