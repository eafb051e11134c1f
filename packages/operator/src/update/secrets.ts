/**
 * The Secrets that an Update leaves behind. Immutable, and named for the Update: one that is there already is the same.
 *
 * An output's value is its JSON. A key of a Secret cannot hold every name that Pulumi allows: such an output gets a key made
 * from its name, and an annotation tells the names of those keys.
 */
import {
  labelsOfUpdate,
  outputsSecretNameOf,
  secretOutputsAnnotation,
  stdoutKey,
  stdoutSecretNameOf,
  updateKind,
  updateNameLabel,
  type Update,
} from "@pko/api";
import type { Known } from "@pko/kube";
import type { Output } from "@pko/rpc";
import type { Secret } from "kubernetes-types/core/v1";

import { outputKeyOf } from "../shared/output-keys.ts";
import { ownerReference } from "../shared/owner-reference.ts";

/** On the Secret of outputs: the names of those outputs that could not be keys, by their keys. */
const outputNamesAnnotation = "auto.pulumi.com/output-names";

/** The API server's limit for all values is 1 MiB; annotations have a limit of their own. */
const maxDataBytes = 1_000_000;
const maxAnnotationBytes = 128 * 1024;

interface OutputsSecret {
  readonly secret: Known<Secret>;
  /** Names of outputs for which there was no room. */
  readonly leftOut: readonly string[];
}

export function outputsSecret(update: Update, outputs: readonly Output[]): OutputsSecret | undefined {
  const known = outputs.filter(({ known }) => known);
  if (known.length === 0) return undefined;
  const { kept, leftOut } = fitting(known);
  const keys = kept.filter(({ output }) => output.secret).map(({ key }) => key);
  const renamed = kept.filter(({ key, output }) => key !== output.name).map(({ key, output }) => [key, output.name]);
  const annotations = {
    [secretOutputsAnnotation]: JSON.stringify(keys.toSorted()),
    ...(renamed.length > 0 && { [outputNamesAnnotation]: JSON.stringify(Object.fromEntries(renamed)) }),
  };
  const data = Object.fromEntries(kept.map(({ key, value }) => [key, value.toString("base64")]));
  const { name = "" } = update.metadata;
  return { secret: ownedSecret(update, { name: outputsSecretNameOf(name), annotations, data }), leftOut };
}

export function stdoutSecret(update: Update, text: string): Known<Secret> {
  const whole = Buffer.from(text).subarray(-maxDataBytes);
  return ownedSecret(update, {
    name: stdoutSecretNameOf(update.metadata.name ?? ""),
    annotations: {},
    data: { [stdoutKey]: whole.toString("base64") },
  });
}

interface KeptOutput {
  readonly name: string;
  readonly secret: boolean;
  /** JSON. */
  readonly json: string;
}

/** The outputs again, from the Secret that holds them. */
export function readOutputs({ metadata, data = {} }: Known<Secret>): KeptOutput[] {
  const secrets = new Set<unknown>(parsed(metadata.annotations?.[secretOutputsAnnotation], []));
  const names: Readonly<Record<string, unknown>> = parsed(metadata.annotations?.[outputNamesAnnotation], {});
  return Object.entries(data).map(([key, value]) => {
    const name = names[key];
    return {
      name: typeof name === "string" ? name : key,
      secret: secrets.has(key),
      json: Buffer.from(value, "base64").toString(),
    };
  });
}

function parsed<T extends object>(text: string | undefined, otherwise: T): T {
  try {
    const value: unknown = JSON.parse(text ?? "");
    return typeof value === "object" && value !== null && Array.isArray(value) === Array.isArray(otherwise)
      ? (value as T)
      : otherwise;
  } catch {
    return otherwise;
  }
}

interface Entry {
  readonly key: string;
  readonly output: Output;
  readonly value: Buffer;
}

/** The small ones first: one that is too large does not keep the others out. */
function fitting(outputs: readonly Output[]): { kept: readonly Entry[]; leftOut: readonly string[] } {
  const entries = outputs
    .map((output): Entry => ({
      key: outputKeyOf(output.name),
      output,
      value: Buffer.from(JSON.stringify(output.value ?? null)),
    }))
    .toSorted((a, b) => a.value.length - b.value.length);
  const kept: Entry[] = [];
  let [dataBytes, noteBytes] = [0, 0];
  for (const entry of entries) {
    dataBytes += entry.value.length + entry.key.length;
    noteBytes += entry.key.length + entry.output.name.length + 8;
    if (dataBytes > maxDataBytes || noteBytes > maxAnnotationBytes) break;
    kept.push(entry);
  }
  const leftOut = entries.slice(kept.length).map(({ output }) => output.name);
  return { kept: kept.toSorted((a, b) => (a.key < b.key ? -1 : 1)), leftOut };
}

/** A user may give an Update a name that is longer than a label. */
function labelsFor(updateName: string): Record<string, string> {
  const { [updateNameLabel]: name, ...others } = labelsOfUpdate(updateName);
  return name.length <= 63 ? { ...others, [updateNameLabel]: name } : others;
}

interface SecretParts {
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly data: Record<string, string>;
}

function ownedSecret(update: Update, { name, annotations, data }: SecretParts): Known<Secret> {
  const { metadata } = update;
  const { namespace = "", name: updateName = "" } = metadata;
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name,
      namespace,
      labels: labelsFor(updateName),
      annotations: { ...annotations },
      ownerReferences: [ownerReference({ ...updateKind, metadata }, { controller: true, blockOwnerDeletion: true })],
    },
    type: "Opaque",
    immutable: true,
    data,
  };
}
