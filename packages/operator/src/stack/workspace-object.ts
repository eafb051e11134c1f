/** The Workspace that a Stack wants. Pure. */
import { createHash } from "node:crypto";

import {
  configMapFolderOf,
  labelsOfStack,
  reconcileRequestAnnotation,
  secretFolderOf,
  workspaceNameOf,
  pulumiContainer,
  type ConfigItem,
  type JsonObject,
  type NormalStack,
  type Stack,
  type ValueSource,
  type Workspace,
  type WorkspaceSpec,
} from "@pko/api";
import { assertNever } from "@pko/rpc";

import { workspaces } from "../kinds.ts";
import type { SourceSpec } from "../sources/source-view.ts";
import { covers, merged } from "./merge.ts";
import { outputKeyOf, stackOutputsSecretOf } from "../shared/output-keys.ts";
import { ownerReference } from "../shared/owner-reference.ts";
import { requestOf } from "./trigger.ts";

/** On the Workspace: a digest of what the Stack asked for, so that what it no longer asks for is seen too. */
const wantedAnnotation = "pulumi.com/wanted";

/** What a Workspace gets from its Stack's source, or from what is remembered of it. */
export type WorkspaceOrigin = SourceSpec | Pick<WorkspaceSpec, "projectInfo">;

export function workspaceObject(stack: Stack, spec: NormalStack, origin: WorkspaceOrigin): Workspace {
  const generated = generatedSpec(spec, origin);
  // What is remembered takes the place of the source, and so of the template's changes to it.
  const { git, flux, local, program: _, ...others } = spec.workspace.spec;
  const overlay = "projectInfo" in origin ? others : { ...others, ...given({ git, flux, local }) };
  const wanted = merged(plain(generated), plain(overlay));
  const request = requestOf(stack);
  return {
    apiVersion: workspaces.apiVersion,
    kind: workspaces.kind,
    metadata: {
      name: workspaceNameOf(spec.name),
      namespace: spec.namespace,
      labels: { ...spec.workspace.labels, ...labelsOfStack(spec.name) },
      annotations: {
        ...spec.workspace.annotations,
        [wantedAnnotation]: digestOf(wanted),
        // Whoever asks for an update also asks for another try of a preparation that has failed.
        ...(request && { [reconcileRequestAnnotation]: request }),
      },
      ownerReferences: [ownerReference(stack, { controller: true, blockOwnerDeletion: false })],
    },
    spec: wanted,
  };
}

/** Whether the Workspace is what the Stack wants already. */
export function isAsWanted(actual: Workspace, wanted: Workspace): boolean {
  const part = ({ metadata, spec }: Workspace): JsonObject =>
    plain({ labels: metadata.labels ?? {}, annotations: metadata.annotations ?? {}, spec: spec ?? {} });
  return covers(part(actual), part(wanted));
}

const digestOf = (wanted: JsonObject): string =>
  createHash("sha256").update(JSON.stringify(wanted)).digest("hex").slice(0, 16);

/** As it will be after the way over the wire. */
const plain = (value: object): JsonObject => JSON.parse(JSON.stringify(value)) as JsonObject;

const given = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

function generatedSpec(spec: NormalStack, origin: WorkspaceOrigin): WorkspaceSpec {
  const { serviceAccountName } = spec.workspace;
  const env = spec.env.map(({ name, from }) => envVar(name, from));
  const envFrom = spec.envFrom.map(({ kind, name }) =>
    kind === "secret" ? { secretRef: { name } } : { configMapRef: { name } },
  );
  const volumes = volumesOf(spec);
  return {
    ...origin,
    ...(serviceAccountName && { serviceAccountName }),
    ...(spec.oidc && { oidc: spec.oidc }),
    ...(env.length > 0 && { env }),
    ...(envFrom.length > 0 && { envFrom }),
    ...(volumes.length > 0 && { podTemplate: { spec: podOf(volumes) } }),
    stacks: [
      {
        name: spec.stackName,
        create: spec.create,
        ...(spec.secretsProvider && { secretsProvider: spec.secretsProvider }),
        ...(spec.config.length > 0 && { config: spec.config.map(configItem) }),
        ...(spec.environments.length > 0 && { environment: [...spec.environments] }),
      },
    ],
  };
}

type EnvVar = NonNullable<WorkspaceSpec["env"]>[number];

/** Tools take these for the path of a file. */
const fileVariables: ReadonlySet<string> = new Set(["KUBECONFIG"]);

function envVar(name: string, from: ValueSource): EnvVar {
  switch (from.kind) {
    case "literal":
      return { name, value: from.value };
    case "secret":
      return { name, valueFrom: { secretKeyRef: { name: from.name, key: from.key } } };
    case "configMap":
      return { name, valueFrom: { configMapKeyRef: { name: from.name, key: from.key } } };
    case "stackOutput":
      if (fileVariables.has(name)) return { name, value: outputFileOf(from) };
      return {
        name,
        valueFrom: { secretKeyRef: { name: stackOutputsSecretOf(from.stack), key: outputKeyOf(from.output) } },
      };
    default:
      return assertNever(from);
  }
}

const outputFileOf = ({ stack, output }: { readonly stack: string; readonly output: string }): string =>
  `${secretFolderOf(stackOutputsSecretOf(stack))}/${outputKeyOf(output)}`;

type WorkspaceConfig = NonNullable<NonNullable<WorkspaceSpec["stacks"]>[number]["config"]>[number];

function configItem({ key, secret, from }: ConfigItem): WorkspaceConfig {
  return { key, ...(secret && { secret }), ...configValue(from) };
}

function configValue(from: ConfigItem["from"]): Pick<WorkspaceConfig, "value" | "valueFrom"> {
  switch (from.kind) {
    case "value":
      return { value: from.value };
    case "secret":
      return { valueFrom: { path: `${secretFolderOf(from.name)}/${from.key}` } };
    case "configMap":
      return { valueFrom: { path: `${configMapFolderOf(from.name)}/${from.key}`, ...(from.json && { json: true }) } };
    case "stackOutput":
      return { valueFrom: { path: outputFileOf(from) } };
    default:
      return assertNever(from);
  }
}

interface Volume {
  readonly kind: "secret" | "configMap";
  readonly name: string;
}

/** One for each Secret and ConfigMap that is read as files. */
function volumesOf({ config, env }: NormalStack): Volume[] {
  const found = new Map<string, Volume>();
  const add = (kind: Volume["kind"], name: string): void => void found.set(`${kind}/${name}`, { kind, name });
  for (const { from } of config) {
    if (from.kind === "secret" || from.kind === "configMap") add(from.kind, from.name);
    if (from.kind === "stackOutput") add("secret", stackOutputsSecretOf(from.stack));
  }
  for (const { name, from } of env) {
    if (from.kind === "stackOutput" && fileVariables.has(name)) add("secret", stackOutputsSecretOf(from.stack));
  }
  return [...found.values()].toSorted((a, b) => (a.kind + a.name < b.kind + b.name ? -1 : 1));
}

type Pod = NonNullable<NonNullable<WorkspaceSpec["podTemplate"]>["spec"]>;

function podOf(volumes: readonly Volume[]): Pod {
  return {
    volumes: volumes.map((volume) => ({
      name: volumeNameOf(volume),
      ...(volume.kind === "secret" ? { secret: { secretName: volume.name } } : { configMap: { name: volume.name } }),
    })),
    containers: [
      {
        name: pulumiContainer,
        volumeMounts: volumes.map((volume) => ({
          name: volumeNameOf(volume),
          mountPath: volume.kind === "secret" ? secretFolderOf(volume.name) : configMapFolderOf(volume.name),
          readOnly: true,
        })),
      },
    ],
  };
}

const longestVolumeName = 63;

/** The name of a Secret may hold dots and be longer than that of a volume. */
function volumeNameOf({ kind, name }: Volume): string {
  const simple = `${kind.toLowerCase()}-${name}`;
  if (simple.length <= longestVolumeName && !name.includes(".")) return simple;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 16);
  return `${kind.toLowerCase()}-${hash}`;
}
