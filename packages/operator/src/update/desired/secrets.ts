/**
 * The Secrets of an Update's result. They are immutable and named after the Update, so one that exists has the same content.
 *
 * The value of an output is stored as JSON. Not every output name that Pulumi allows is a valid key of a Secret: such an
 * output gets a key that is derived from its name, and an annotation maps the key to the name.
 */
import {
  labelsOfUpdate,
  outputsSecretNameOf,
  planSecretNameOf,
  secretOutputsAnnotation,
  stdoutKey,
  stdoutSecretNameOf,
  updateKind,
  updateNameLabel,
  type Update,
} from "@pko/api";
import type { ApiObject } from "@pko/kube";
import { maxPlanPartChars, type Output } from "@pko/rpc";
import type { Secret } from "kubernetes-types/core/v1";

import { outputKeyOf } from "../../shared/outputs/output-keys.ts";
import { outputNamesAnnotation } from "../../shared/outputs/stored-outputs.ts";
import { planKey } from "../plan-key.ts";
import { ownerReference } from "../../shared/objects/owner-reference.ts";

/** The API server's limit for all values is 1 MiB; annotations have a separate limit. */
const maxDataBytes = 1_000_000;
const maxAnnotationBytes = 128 * 1024;

interface OutputsSecret {
  readonly secret: ApiObject<Secret>;
  /** Names of outputs that do not fit. */
  readonly leftOut: readonly string[];
}

export function outputsSecret(update: Update, outputs: readonly Output[]): OutputsSecret | undefined {
  const known = outputs.filter(({ known }) => known);
  if (known.length === 0) return undefined;
  const { fitting, leftOut } = fit(known);
  const keys = fitting.filter(({ output }) => output.secret).map(({ key }) => key);
  const renamed = fitting.filter(({ key, output }) => key !== output.name).map(({ key, output }) => [key, output.name]);
  const annotations = {
    [secretOutputsAnnotation]: JSON.stringify(keys.toSorted()),
    ...(renamed.length > 0 && { [outputNamesAnnotation]: JSON.stringify(Object.fromEntries(renamed)) }),
  };
  const data = Object.fromEntries(fitting.map(({ key, value }) => [key, value.toString("base64")]));
  const { name = "" } = update.metadata;
  return { secret: ownedSecret(update, { name: outputsSecretNameOf(name), annotations, data }), leftOut };
}

export function stdoutSecret(update: Update, text: string): ApiObject<Secret> {
  const whole = Buffer.from(text).subarray(-maxDataBytes);
  return ownedSecret(update, {
    name: stdoutSecretNameOf(update.metadata.name ?? ""),
    annotations: {},
    data: { [stdoutKey]: whole.toString("base64") },
  });
}

/** The parts of a sealed plan. A Secret has at most 1 MiB. */
export function planSecrets(update: Update, content: string): ApiObject<Secret>[] {
  const count = Math.max(1, Math.ceil(content.length / maxPlanPartChars));
  return Array.from({ length: count }, (_, part) => {
    const text = content.slice(part * maxPlanPartChars, (part + 1) * maxPlanPartChars);
    return ownedSecret(update, {
      name: planSecretNameOf(update.metadata.name ?? "", part),
      annotations: {},
      data: { [planKey]: Buffer.from(text).toString("base64") },
    });
  });
}

interface Entry {
  readonly key: string;
  readonly output: Output;
  readonly value: Buffer;
}

/** The smallest first, so that one large output does not displace the others. */
function fit(outputs: readonly Output[]): { fitting: readonly Entry[]; leftOut: readonly string[] } {
  const entries = outputs
    .map((output): Entry => ({
      key: outputKeyOf(output.name),
      output,
      value: Buffer.from(JSON.stringify(output.value ?? null)),
    }))
    .toSorted((a, b) => a.value.length - b.value.length);
  const fitting: Entry[] = [];
  let [dataBytes, annotationBytes] = [0, 0];
  for (const entry of entries) {
    dataBytes += entry.value.length + entry.key.length;
    annotationBytes += entry.key.length + entry.output.name.length + 8;
    if (dataBytes > maxDataBytes || annotationBytes > maxAnnotationBytes) break;
    fitting.push(entry);
  }
  const leftOut = entries.slice(fitting.length).map(({ output }) => output.name);
  return { fitting: fitting.toSorted((a, b) => (a.key < b.key ? -1 : 1)), leftOut };
}

/** The name of a user's Update may be longer than a label value. */
function labelsFor(updateName: string): Record<string, string> {
  const { [updateNameLabel]: name, ...others } = labelsOfUpdate(updateName);
  return name.length <= 63 ? { ...others, [updateNameLabel]: name } : others;
}

interface SecretParts {
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly data: Record<string, string>;
}

function ownedSecret(update: Update, { name, annotations, data }: SecretParts): ApiObject<Secret> {
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
