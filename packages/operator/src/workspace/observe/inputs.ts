/** What a Workspace reads by name while it has a pod, or needs one: Secrets, ConfigMaps and the Program. */
import { secretOutputsAnnotation, type NormalWorkspace, type Program } from "@pko/api";
import { builtin, refKey, type Client, type ApiObject, type Store } from "@pko/kube";
import type { ConfigMap, PodTemplateSpec, Secret } from "kubernetes-types/core/v1";

import { versionOf, type PolledObject } from "../../inputs/reference-poller.ts";
import { buildObjects } from "../pod/build-objects.ts";
import { buildPodTemplate } from "../pod/build-pod.ts";
import { ephemeralBackend } from "../pod/file-backend.ts";
import { exchangeOf, plainOidc } from "../pod/oidc.ts";
import {
  hashReferences,
  missingReferences,
  referencesOf,
  type Reading,
  type Readings,
  type Reference,
} from "../pod/references.ts";
import { withSecretVariables } from "../pod/secret-variables.ts";
import { buildPrepareRequest, credentialSecrets, type Materials } from "../prepare/request.ts";
import type { WorkspaceSettings } from "../settings.ts";
import type { Inputs, WorkspaceView } from "../view.ts";

export interface InputWorld {
  readonly client: Client;
  readonly programs: Store<Program>;
  readonly settings: WorkspaceSettings;
}

interface Reader {
  readonly view: WorkspaceView;
  readonly normal: NormalWorkspace;
  readonly signal: AbortSignal;
}

export async function readInputs(world: InputWorld, reader: Reader): Promise<Inputs> {
  const { view, normal } = reader;
  const materials = await readMaterials(world, reader);
  const requested = buildPrepareRequest(normal, materials);
  const pod = await readPod(world, reader);
  const read = polledObjects(normal, [...materials.secrets, ...(pod.ok ? pod.readings : [])]);
  const invalid = (problems: readonly string[]): Inputs => ({
    pod: { ok: false, problems },
    missing: [],
    read,
    materials,
    requested,
  });
  if (!pod.ok) return invalid(pod.problems);
  const { template, references, readings } = pod;
  const referencesHash = hashReferences(references, readings);
  const objects = buildObjects({ workspace: view.workspace, normal, template, referencesHash });
  if (typeof objects === "string") return invalid([objects]);
  const ephemeralState = template.spec && ephemeralBackend(template.spec, readings);
  return {
    pod: { ok: true, template, objects },
    missing: missingReferences(references, readings),
    read,
    materials,
    requested,
    ...(ephemeralState !== undefined && { ephemeralState }),
  };
}

type ReadPod =
  | {
      readonly ok: true;
      readonly template: PodTemplateSpec;
      readonly references: readonly Reference[];
      readonly readings: Readings;
    }
  | { readonly ok: false; readonly problems: readonly string[] };

/** The pod, and what it reads: only its references show whether it has its own access token. */
async function readPod(world: InputWorld, reader: Reader): Promise<ReadPod> {
  const { normal, view } = reader;
  const { settings } = world;
  const { uid } = view.workspace.metadata;
  const parts = { settings, ...(uid !== undefined && { uid }) };
  const plain = buildPodTemplate(normal, parts);
  if (!plain.ok) return plain;
  const { spec } = plain.template;
  if (!spec) return { ok: true, template: plain.template, references: [], readings: [] };
  const references = referencesOf(spec);
  const readings = await readAll(world, reader, references);
  const exchanging = exchangeOf(normal, settings.oidc ?? plainOidc, { spec, readings });
  switch (exchanging.kind) {
    case "none":
      return { ok: true, template: withSecretVariables(plain.template, readings), references, readings };
    case "invalid":
      return { ok: false, problems: [exchanging.problem] };
    case "exchange": {
      const built = buildPodTemplate(normal, { ...parts, exchange: exchanging.exchange });
      if (!built.ok) return built;
      return { ok: true, template: withSecretVariables(built.template, readings), references, readings };
    }
  }
}

async function readMaterials(world: InputWorld, reader: Reader): Promise<Materials> {
  const { source, namespace } = reader.normal;
  const names = credentialSecrets(reader.normal).map((name) => ({ kind: "Secret" as const, name }));
  const secrets = await readAll(world, reader, names);
  const program = source.kind === "program" ? world.programs.get(refKey({ namespace, name: source.name })) : undefined;
  const { maxUnpackedBytes } = world.settings;
  return {
    secrets,
    ...(program && { program }),
    ...(maxUnpackedBytes !== undefined && { maxUnpackedBytes }),
  };
}

const polledObjects = ({ namespace }: NormalWorkspace, readings: Readings): PolledObject[] =>
  readings.map(({ kind, name, version = "" }) => ({ kind, namespace, name, version }));

/** Reads each object once, however many references it has. */
async function readAll(
  { client }: InputWorld,
  { normal, signal }: Reader,
  wanted: readonly Pick<Reading, "kind" | "name">[],
): Promise<Reading[]> {
  const distinct = new Map(wanted.map(({ kind, name }) => [`${kind}/${name}`, { kind, name }]));
  const { namespace } = normal;
  return await Promise.all(
    Array.from(distinct.values(), async ({ kind, name }): Promise<Reading> => {
      const ref = { namespace, name };
      if (kind === "Secret") {
        const secret = await client.find(builtin.secrets, ref, { signal });
        return { kind, name, version: versionOf(secret), ...(secret && { found: secretContent(secret) }) };
      }
      const configMap = await client.find(builtin.configMaps, ref, { signal });
      return { kind, name, version: versionOf(configMap), ...(configMap && { found: configMapContent(configMap) }) };
    }),
  );
}

type Content = NonNullable<Reading["found"]>;

function secretContent(secret: ApiObject<Secret>): Content {
  const data = Object.entries(secret.data ?? {}).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]);
  const secretKeys = secretKeysIn(secret);
  return {
    uid: secret.metadata.uid ?? "",
    data: Object.fromEntries(data) as Record<string, string>,
    ...(secretKeys && { secretKeys }),
  };
}

function secretKeysIn({ metadata }: ApiObject<Secret>): string[] | undefined {
  try {
    const keys: unknown = JSON.parse(metadata.annotations?.[secretOutputsAnnotation] ?? "");
    return Array.isArray(keys) ? keys.map(String) : undefined;
  } catch {
    return undefined;
  }
}

function configMapContent(configMap: ApiObject<ConfigMap>): Content {
  return { uid: configMap.metadata.uid ?? "", data: { ...configMap.binaryData, ...configMap.data } };
}
