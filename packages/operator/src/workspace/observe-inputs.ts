/** What a Workspace that is awake, or is to be, needs to have read: Secrets, ConfigMaps, its pod's admission. */
import { secretOutputsAnnotation, type NormalWorkspace, type Program } from "@pko/api";
import { ApiError, builtin, denialOf, findOwnership, refKey, type Client, type Known, type Store } from "@pko/kube";
import { assertNever } from "@pko/rpc";
import type { ConfigMap, Pod, PodTemplateSpec, Secret } from "kubernetes-types/core/v1";

import { versionOf, type WatchedObject } from "../inputs/reference-watch.ts";
import { buildObjects } from "./build-objects.ts";
import { buildPodTemplate } from "./build-pod.ts";
import { losableBackend } from "./file-backend.ts";
import { podNameOf } from "./names.ts";
import { podOwner } from "./pod-owner.ts";
import { exchangeOf, plainOidc } from "./oidc.ts";
import {
  buildPrepareRequest,
  githubAppOf,
  secretsOf,
  type AppToken,
  type GitHubAppTokens,
  type Requested,
} from "./prepare-request.ts";
import {
  hashReferences,
  missingReferences,
  referencesOf,
  type Reading,
  type Readings,
  type Reference,
} from "./references.ts";
import { withSecretVariables } from "./secret-variables.ts";
import type { WorkspaceSettings } from "./settings.ts";
import { sinceTransitionMs, type Admission, type Inputs, type WorkspaceView } from "./view.ts";

export interface InputWorld {
  readonly client: Client;
  readonly programs: Store<Program>;
  /** Without it a Workspace that signs in as a GitHub App is told so. */
  readonly githubApps?: GitHubAppTokens;
  readonly settings: WorkspaceSettings;
}

interface Reader {
  readonly view: WorkspaceView;
  readonly normal: NormalWorkspace;
  readonly signal: AbortSignal;
}

export async function readInputs(world: InputWorld, reader: Reader): Promise<Inputs> {
  const { view, normal } = reader;
  const { requested, secrets } = await readRequest(world, reader);
  const pod = await readPod(world, reader);
  if (!pod.ok) return { pod, missing: [], requested, read: watched(normal, secrets) };
  const { template, references, readings } = pod;
  const referencesHash = hashReferences(references, readings);
  const objects = buildObjects({ workspace: view.workspace, normal, template, referencesHash });
  const read = watched(normal, [...secrets, ...readings]);
  if (typeof objects === "string") return { pod: { ok: false, problems: [objects] }, missing: [], requested, read };
  const losable = template.spec && losableBackend(template.spec, readings);
  const admission = await tryAdmission(world, reader, template);
  return {
    pod: { ok: true, template, objects },
    missing: missingReferences(references, readings),
    requested,
    read,
    ...(losable !== undefined && { losable }),
    ...(admission && { admission }),
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

/** The pod, and what it reads: only that tells whether it has a token of its own. */
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
    default:
      return assertNever(exchanging);
  }
}

async function readRequest(
  world: InputWorld,
  reader: Reader,
): Promise<{ readonly requested: Requested; readonly secrets: Readings }> {
  const { normal } = reader;
  const names = secretsOf(normal).map((name) => ({ kind: "Secret" as const, name }));
  const secrets = await readAll(world, reader, names);
  const program = normal.source.kind === "program" ? programOf(world, normal, normal.source.name) : undefined;
  const appToken = await readAppToken(world, reader, secrets);
  const { maxUnpackedBytes } = world.settings;
  const requested = buildPrepareRequest(normal, {
    secrets,
    ...(program && { program }),
    ...(appToken && { appToken }),
    ...(maxUnpackedBytes !== undefined && { maxUnpackedBytes }),
  });
  return { requested, secrets };
}

const watched = ({ namespace }: NormalWorkspace, readings: Readings): WatchedObject[] =>
  readings.map(({ kind, name, version = "" }) => ({ kind, namespace, name, version }));

function programOf({ programs }: InputWorld, { namespace }: NormalWorkspace, name: string): Program | undefined {
  return programs.get(refKey({ namespace, name }));
}

async function readAppToken(
  { githubApps }: InputWorld,
  { normal, signal }: Reader,
  secrets: Readings,
): Promise<AppToken | undefined> {
  const app = githubAppOf(normal, secrets);
  if (!app || !githubApps) return undefined;
  return app.ok ? await githubApps.tokenFor(app.value, signal) : app;
}

/** Each object once, however many read it. */
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
        return { kind, name, version: versionOf(secret), ...(secret && { found: dataOfSecret(secret) }) };
      }
      const configMap = await client.find(builtin.configMaps, ref, { signal });
      return { kind, name, version: versionOf(configMap), ...(configMap && { found: dataOfConfigMap(configMap) }) };
    }),
  );
}

type Found = NonNullable<Reading["found"]>;

function dataOfSecret(secret: Known<Secret>): Found {
  const data = Object.entries(secret.data ?? {}).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]);
  const secretKeys = secretKeysOf(secret);
  return {
    uid: secret.metadata.uid ?? "",
    data: Object.fromEntries(data) as Record<string, string>,
    ...(secretKeys && { secretKeys }),
  };
}

function secretKeysOf({ metadata }: Known<Secret>): string[] | undefined {
  try {
    const keys: unknown = JSON.parse(metadata.annotations?.[secretOutputsAnnotation] ?? "");
    return Array.isArray(keys) ? keys.map(String) : undefined;
  } catch {
    return undefined;
  }
}

function dataOfConfigMap(configMap: Known<ConfigMap>): Found {
  return { uid: configMap.metadata.uid ?? "", data: { ...configMap.binaryData, ...configMap.data } };
}

/** How long a StatefulSet may take to make a pod before the API server is asked what is in its way. */
const podMissingMs = 10_000;

/** The StatefulSet's controller keeps to itself why no pod comes about: a dry run tells. */
async function tryAdmission(
  world: InputWorld,
  reader: Reader,
  template: PodTemplateSpec,
): Promise<Admission | undefined> {
  const { view, normal, signal } = reader;
  if (view.pod || !view.statefulSet?.updateRevision || sinceTransitionMs(view) < podMissingMs) return undefined;
  try {
    await world.client.create(builtin.pods, podFor(normal, template), { dryRun: true, signal });
    return { kind: "admitted" };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500 || isOurOwnLack(error)) return undefined;
    if (error.reason === "AlreadyExists") return await occupiedPodName(world, reader, view.statefulSet.uid);
    return { kind: "rejected", message: error.explanation };
  }
}

/** Undefined where the pod is the StatefulSet's after all, or was deleted meanwhile. */
async function occupiedPodName(
  { client }: InputWorld,
  { normal: { namespace, name }, signal }: Reader,
  statefulSetUid: string,
): Promise<Admission | undefined> {
  const target = { client, owner: podOwner(name, statefulSetUid), signal };
  const ownership = await findOwnership(target, { resource: builtin.pods, ref: { namespace, name: podNameOf(name) } });
  switch (ownership.kind) {
    case "absent":
    case "ours":
      return undefined;
    case "dependent":
      return { kind: "occupied", occupied: { kind: "foreign", occupant: ownership.occupant } };
    case "former":
    case "foreign":
      return { kind: "occupied", occupied: ownership };
    default:
      return assertNever(ownership);
  }
}

/** The pod that the StatefulSet would make. */
export function podFor({ name, namespace }: NormalWorkspace, template: PodTemplateSpec): Known<Pod> {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...template.metadata, name: podNameOf(name), namespace },
    ...(template.spec && { spec: template.spec }),
  };
}

/** The operator itself may not do this: it says nothing about the pod. */
export function isOurOwnLack(error: ApiError): boolean {
  return error.status === 401 || denialOf(error) !== undefined;
}
