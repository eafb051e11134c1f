/** From a spec, and the objects that it refers to, to what should exist: the objects and the request to the agent. Pure. */
import { pulumiContainer, type NormalWorkspace, type Program, type Workspace } from "@pko/api";
import type { PodTemplateSpec } from "kubernetes-types/core/v1";

import { buildPrepareRequest, credentialSecrets, type Materials } from "../prepare/request.ts";
import { stackName } from "../../shared/log-keys.ts";
import type { AppliedClass } from "../../shared/workspace-classes.ts";
import type { WorkspaceSettings } from "../settings.ts";
import type { Inputs } from "../view.ts";
import { buildObjects, type BuiltObjects } from "./build-objects.ts";
import { buildPodTemplate, type BuiltPod } from "./build-pod.ts";
import { ephemeralBackend } from "./file-backend.ts";
import { withHelperContainer } from "./helper-container.ts";
import { exchangeOf, plainOidc } from "./oidc.ts";
import {
  hashReferences,
  missingReferences,
  referencesOf,
  type Reading,
  type Readings,
  type Reference,
} from "./references.ts";
import { withSecretVariables } from "./secret-variables.ts";

interface Parts {
  readonly workspace: Workspace;
  readonly normal: NormalWorkspace;
  readonly settings: WorkspaceSettings;
  /** The WorkspaceClass of the namespace. */
  readonly applied?: AppliedClass;
}

/** The pod as far as it is known before anything is read. */
export interface PodDraft extends Parts {
  readonly plain: BuiltPod;
  /** Of the pod. */
  readonly references: readonly Reference[];
  /** Every Secret and ConfigMap to read, once each: those of the pod, and those with credentials for the source. */
  readonly objects: readonly ObjectName[];
}

interface ReadObjects {
  readonly readings: Readings;
  readonly program?: Program;
  /** The `hash` of the objects that exist. */
  readonly builtHash?: string;
  /** The images without a shell that the StatefulSet of the Workspace records, and that its pod shows now. */
  readonly withoutShell?: { readonly recorded?: string | undefined; readonly shown?: string | undefined };
  /** Whether the pod of another Workspace showed that an image has no shell. */
  readonly failsElsewhere?: (image: string) => boolean;
}

type ObjectName = Pick<Reading, "kind" | "name">;

export function draftPod(parts: Parts): PodDraft {
  const plain = buildPodTemplate(parts.normal, podParts(parts));
  const references = plain.ok && plain.template.spec ? referencesOf(plain.template.spec) : [];
  const credentials = credentialSecrets(parts.normal).map((name) => ({ kind: "Secret" as const, name }));
  return { ...parts, plain, references, objects: distinct([...credentials, ...references]) };
}

const podParts = ({ workspace, settings, applied }: Parts) => {
  const { uid } = workspace.metadata;
  return { settings, ...(uid !== undefined && { uid }), ...(applied && { applied }) };
};

const distinct = (objects: readonly ObjectName[]): ObjectName[] => [
  ...new Map(objects.map(({ kind, name }) => [`${kind}/${name}`, { kind, name }])).values(),
];

function originOf({ metadata }: Workspace): NonNullable<Materials["origin"]> {
  const stack = stackName(metadata);
  return { workspace: metadata.name ?? "", ...(stack !== undefined && { stack }) };
}

/** With the objects that the draft names, and the Program. */
export function buildInputs(draft: PodDraft, read: ReadObjects): Inputs {
  const { normal, settings, references, workspace } = draft;
  const { readings, program } = read;
  const { maxUnpackedBytes } = settings;
  const materials: Materials = {
    secrets: readings.filter(({ kind }) => kind === "Secret"),
    ...(program && { program }),
    ...(maxUnpackedBytes !== undefined && { maxUnpackedBytes }),
    origin: originOf(workspace),
  };
  const { namespace } = normal;
  const common = {
    read: readings.map(({ kind, name, version = "" }) => ({ kind, namespace, name, version })),
    materials,
    requested: buildPrepareRequest(normal, materials),
  };
  const invalid = (pod: Extract<BuiltPod, { ok: false }>): Inputs => ({ ...common, pod, missing: [] });
  const pod = completePod(draft, readings);
  if (!pod.ok) return invalid(pod);
  const { template } = pod;
  const built = buildForm(draft, template, read);
  if (typeof built === "string") return invalid({ ok: false, problems: [built] });
  const ephemeralState = template.spec && ephemeralBackend(template.spec, readings);
  return {
    ...common,
    pod: { ok: true, ...built },
    missing: missingReferences(references, readings),
    ...(ephemeralState !== undefined && { ephemeralState }),
  };
}

interface BuiltForm {
  readonly template: PodTemplateSpec;
  readonly objects: BuiltObjects;
}

/**
 * With a helper container, unless there is a reason for an init container. What exists and is up to date stays, with either
 * container, unless its own pod shows that it cannot start: a pod is not replaced only for this. A string is a problem.
 */
function buildForm(
  draft: PodDraft,
  template: PodTemplateSpec,
  read: ReadObjects,
): (BuiltForm & { readonly withInitContainer?: BuiltForm }) | string {
  const { readings, builtHash, withoutShell = {}, failsElsewhere = () => false } = read;
  const { workspace, normal, references } = draft;
  const referencesHash = hashReferences(references, readings);
  const image = imageOf(template);
  const { recorded, shown } = withoutShell;
  const isRecorded = image === recorded || image === shown;
  const build = (form: PodTemplateSpec) =>
    buildObjects({
      workspace,
      normal,
      template: form,
      referencesHash,
      ...(isRecorded && { imageWithoutShell: image }),
    });
  const objects = build(template);
  if (typeof objects === "string") return objects;
  const withInitContainer = { template, objects };
  const faster = image === shown || objects.hash === builtHash ? undefined : withHelperContainer(template, normal);
  if (!faster) return withInitContainer;
  const fasterObjects = build(faster);
  if (typeof fasterObjects === "string") return fasterObjects;
  const isNew = fasterObjects.hash !== builtHash;
  if (isNew && (isRecorded || failsElsewhere(image))) return withInitContainer;
  return { template: faster, objects: fasterObjects, withInitContainer };
}

const imageOf = ({ spec }: PodTemplateSpec): string =>
  spec?.containers.find(({ name }) => name === pulumiContainer)?.image ?? "";

/** Only what the pod reads shows whether it has its own access token. */
function completePod(draft: PodDraft, readings: Readings): BuiltPod {
  const { plain, normal, settings } = draft;
  if (!plain.ok || !plain.template.spec) return plain;
  const complete = (template: PodTemplateSpec): BuiltPod => ({
    ok: true,
    template: withSecretVariables(template, readings),
  });
  const exchanging = exchangeOf(normal, settings.oidc ?? plainOidc, { spec: plain.template.spec, readings });
  switch (exchanging.kind) {
    case "none":
      return complete(plain.template);
    case "invalid":
      return { ok: false, problems: [exchanging.problem] };
    case "exchange": {
      const built = buildPodTemplate(normal, { ...podParts(draft), exchange: exchanging.exchange });
      return built.ok ? complete(built.template) : built;
    }
  }
}
