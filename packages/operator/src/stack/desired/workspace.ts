/** The Workspace that a Stack wants. Pure. */

import {
  configMapFolderOf,
  labelsOfStack,
  reconcileRequestAnnotation,
  secretFolderOf,
  workspaceNameOf,
  pulumiContainer,
  type ConfigItem,
  type JsonObject,
  type JsonValue,
  type NormalStack,
  type Stack,
  type ValueSource,
  type Workspace,
  type WorkspaceSpec,
} from "@pko/api";

import { workspaces } from "../../kinds.ts";
import type { SourceSpec } from "../../sources/source-view.ts";
import { noDefaults, type ClassDefaults } from "./class-defaults.ts";
import { covers, mergeTemplate } from "./merge.ts";
import { outputKeyOf, stackOutputsSecretOf } from "../../shared/outputs/output-keys.ts";
import { textHash } from "../../shared/digest.ts";
import { ownerReference } from "../../shared/objects/owner-reference.ts";
import { reconcileRequestOf } from "../history/trigger.ts";

/** On the Workspace: a digest of the wanted spec. It shows also that a field is no longer wanted. */
const wantedAnnotation = "pulumi.com/wanted";

/** What the Stack's source contributes, or the status instead if the source is not available. */
export type WorkspaceOrigin = SourceSpec | Pick<WorkspaceSpec, "projectInfo">;

interface WorkspaceParts {
  readonly origin: WorkspaceOrigin;
  /** Of the namespace's WorkspaceClass. */
  readonly defaults?: ClassDefaults;
}

export function workspaceObject(stack: Stack, spec: NormalStack, parts: WorkspaceParts): Workspace {
  const { origin, defaults = noDefaults } = parts;
  const generated = asJson(generatedSpec(spec, origin));
  // Recorded project information replaces the source, and so the template's changes to the source.
  const { git, flux, local, program: _, ...others } = spec.workspace.spec;
  const source = "projectInfo" in origin ? {} : definedFields({ git, flux, local });
  const overlay = asJson({ ...others, ...source });
  const merged = mergeTemplate(mergeTemplate(defaults.spec, generated), overlay);
  const wanted = { ...merged, ...variableSources(defaults.spec, overlay["envFrom"] ?? generated["envFrom"]) };
  const request = reconcileRequestOf(stack);
  return {
    apiVersion: workspaces.apiVersion,
    kind: workspaces.kind,
    metadata: {
      name: workspaceNameOf(spec.name),
      namespace: spec.namespace,
      labels: { ...defaults.labels, ...spec.workspace.labels, ...labelsOfStack(spec.name) },
      annotations: {
        ...defaults.annotations,
        ...spec.workspace.annotations,
        [wantedAnnotation]: wantedDigest(wanted),
        // A reconcile request also retries a preparation that has failed.
        ...(request && { [reconcileRequestAnnotation]: request }),
      },
      ownerReferences: [ownerReference(stack, { controller: true, blockOwnerDeletion: false })],
    },
    spec: wanted,
  };
}

/** The items have no keys to merge them by. The last one with a variable takes precedence, so those of the class are first. */
function variableSources({ envFrom: ofClass }: JsonObject, own: JsonValue | undefined): JsonObject {
  return Array.isArray(ofClass) && Array.isArray(own) ? { envFrom: [...ofClass, ...own] } : {};
}

/** Whether the Workspace already has everything that the Stack wants. */
export function isWorkspaceCurrent(actual: Workspace, wanted: Workspace): boolean {
  const part = ({ metadata, spec }: Workspace): JsonObject =>
    asJson({ labels: metadata.labels ?? {}, annotations: metadata.annotations ?? {}, spec: spec ?? {} });
  return covers(part(actual), part(wanted));
}

const wantedDigest = (wanted: JsonObject): string => textHash(JSON.stringify(wanted), 16);

/** As the API server receives it. */
const asJson = (value: object): JsonObject => JSON.parse(JSON.stringify(value)) as JsonObject;

const definedFields = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

function generatedSpec(spec: NormalStack, origin: WorkspaceOrigin): WorkspaceSpec {
  const { serviceAccountName } = spec.workspace;
  const env = spec.env.map(({ name, from }) => envVar(name, from));
  const envFrom = spec.envFrom.map(({ kind, name }) =>
    kind === "secret" ? { secretRef: { name } } : { configMapRef: { name } },
  );
  const volumes = fileVolumes(spec);
  return {
    ...origin,
    ...(serviceAccountName && { serviceAccountName }),
    ...(spec.oidc && { oidc: spec.oidc }),
    ...(env.length > 0 && { env }),
    ...(envFrom.length > 0 && { envFrom }),
    ...(volumes.length > 0 && { podTemplate: { spec: podWith(volumes) } }),
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

/** Tools expect the path of a file in these. */
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
      if (fileVariables.has(name)) return { name, value: outputFile(from) };
      return {
        name,
        valueFrom: { secretKeyRef: { name: stackOutputsSecretOf(from.stack), key: outputKeyOf(from.output) } },
      };
  }
}

const outputFile = ({ stack, output }: { readonly stack: string; readonly output: string }): string =>
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
      return { valueFrom: { path: outputFile(from) } };
  }
}

interface Volume {
  readonly kind: "secret" | "configMap";
  readonly name: string;
}

/** One for each Secret and ConfigMap that is read as files. */
function fileVolumes({ config, env }: NormalStack): Volume[] {
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

function podWith(volumes: readonly Volume[]): Pod {
  return {
    volumes: volumes.map((volume) => ({
      name: volumeName(volume),
      ...(volume.kind === "secret" ? { secret: { secretName: volume.name } } : { configMap: { name: volume.name } }),
    })),
    containers: [
      {
        name: pulumiContainer,
        volumeMounts: volumes.map((volume) => ({
          name: volumeName(volume),
          mountPath: volume.kind === "secret" ? secretFolderOf(volume.name) : configMapFolderOf(volume.name),
          readOnly: true,
        })),
      },
    ],
  };
}

const longestVolumeName = 63;

/** Unlike that of a volume, the name of a Secret may contain dots and have more than 63 characters. */
function volumeName({ kind, name }: Volume): string {
  const simple = `${kind.toLowerCase()}-${name}`;
  if (simple.length <= longestVolumeName && !name.includes(".")) return simple;
  const hash = textHash(name, 16);
  return `${kind.toLowerCase()}-${hash}`;
}
