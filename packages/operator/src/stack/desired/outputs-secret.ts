/** The Secret `<stack>-outputs`, which holds all outputs of a Stack under a name that stays the same. Pure. */
import { labelsOfStack, secretOutputsAnnotation, type JsonValue, type Stack } from "@pko/api";
import { builtin, type ApiObject } from "@pko/kube";
import type { Secret } from "kubernetes-types/core/v1";

import { outputKeyOf, stackOutputsSecretOf } from "../../shared/outputs/output-keys.ts";
import { ownerReference } from "../../shared/objects/owner-reference.ts";
import { readOutputs } from "../../shared/outputs/stored-outputs.ts";
import type { OutputValue, OutputVersions, OutputsView } from "../view.ts";

/** On the Secret: which Update last changed each output. Stacks that use an output follow its changes by this. */
const outputVersionsAnnotation = "pulumi.com/output-versions";

type ReadOutputs = Extract<OutputsView, { kind: "read" }>;

export function outputsSecret(stack: Stack, updateName: string, { values, former }: ReadOutputs): ApiObject<Secret> {
  const data = Object.fromEntries(values.map(({ name, value }) => [outputKeyOf(name), base64(plainText(value))]));
  const versions = Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key, outputVersion(key, value, { former, updateName })]),
  );
  const { name = "", namespace = "" } = stack.metadata;
  return {
    apiVersion: builtin.secrets.apiVersion,
    kind: builtin.secrets.kind,
    metadata: {
      name: stackOutputsSecretOf(name),
      namespace,
      labels: labelsOfStack(name),
      annotations: {
        [secretOutputsAnnotation]: JSON.stringify(
          values.filter(({ secret }) => secret).map(({ name }) => outputKeyOf(name)),
        ),
        [outputVersionsAnnotation]: JSON.stringify(versions),
      },
      ownerReferences: [ownerReference(stack, { controller: true, blockOwnerDeletion: false })],
    },
    type: "Opaque",
    data,
  };
}

interface Change {
  readonly former: ReadOutputs["former"];
  readonly updateName: string;
}

function outputVersion(key: string, value: string, { former, updateName }: Change): string {
  const known = former.versions[key];
  return known !== undefined && former.data[key] === value ? known : updateName;
}

/** Strings are written verbatim, other values as JSON. JSON is also YAML, so a kubeconfig may be either. */
const plainText = (value: JsonValue): string => (typeof value === "string" ? value : JSON.stringify(value));

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** The outputs in the Secret of an Update. */
export function outputValues(secret: ApiObject<Secret>): OutputValue[] {
  return readOutputs(secret).map(({ name, secret: isSecret, json }) => ({
    name,
    secret: isSecret,
    value: parsed(json),
  }));
}

function parsed(json: string): JsonValue {
  try {
    return JSON.parse(json) as JsonValue;
  } catch {
    return json;
  }
}

export function outputVersions(secret: ApiObject<Secret> | undefined): OutputVersions {
  try {
    const versions = JSON.parse(secret?.metadata.annotations?.[outputVersionsAnnotation] ?? "{}") as unknown;
    return typeof versions === "object" && versions !== null ? (versions as OutputVersions) : {};
  } catch {
    return {};
  }
}
