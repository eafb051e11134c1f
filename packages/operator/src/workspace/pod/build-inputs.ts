/** From a spec, and the objects that it refers to, to what should exist: the objects and the request to the agent. Pure. */
import type { NormalWorkspace, Program, Workspace } from "@pko/api";
import type { PodTemplateSpec } from "kubernetes-types/core/v1";

import { buildPrepareRequest, credentialSecrets, type Materials } from "../prepare/request.ts";
import type { AppliedClass } from "../../shared/workspace-classes.ts";
import type { WorkspaceSettings } from "../settings.ts";
import type { Inputs } from "../view.ts";
import { buildObjects } from "./build-objects.ts";
import { buildPodTemplate, type BuiltPod } from "./build-pod.ts";
import { ephemeralBackend } from "./file-backend.ts";
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

/** With the objects that the draft names, and the Program. */
export function buildInputs(draft: PodDraft, { readings, program }: ReadObjects): Inputs {
  const { workspace, normal, settings, references } = draft;
  const { maxUnpackedBytes } = settings;
  const materials: Materials = {
    secrets: readings.filter(({ kind }) => kind === "Secret"),
    ...(program && { program }),
    ...(maxUnpackedBytes !== undefined && { maxUnpackedBytes }),
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
  const objects = buildObjects({ workspace, normal, template, referencesHash: hashReferences(references, readings) });
  if (typeof objects === "string") return invalid({ ok: false, problems: [objects] });
  const ephemeralState = template.spec && ephemeralBackend(template.spec, readings);
  return {
    ...common,
    pod: { ok: true, template, objects },
    missing: missingReferences(references, readings),
    ...(ephemeralState !== undefined && { ephemeralState }),
  };
}

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
