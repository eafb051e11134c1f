/** All reads of the Workspace controller. What can be missing is data; Secrets are read by name, and only when needed. */
import {
  normaliseWorkspace,
  secretOutputsAnnotation,
  statefulSetNameOf,
  type NormalWorkspace,
  type Program,
  type Update,
  type Workspace,
} from "@pko/api";
import { ApiError, builtin, keyOf, refKey, type Client, type Key, type Known, type Store } from "@pko/kube";
import { assertNever } from "@pko/rpc";
import type { StatefulSet } from "kubernetes-types/apps/v1";
import type { ConfigMap, Pod, PodTemplateSpec, Secret } from "kubernetes-types/core/v1";

import type { Authority, Preparations } from "../agents/agents.ts";
import { versionOf, type WatchedObject } from "../inputs/reference-watch.ts";
import { isComplete } from "../update/conditions.ts";
import { workspaceIndex } from "../update/observe.ts";
import { buildObjects, certificateIn } from "./build-objects.ts";
import { buildPodTemplate } from "./build-pod.ts";
import { isUnschedulable } from "./explain-pod.ts";
import { losableBackend } from "./file-backend.ts";
import { builtHashAnnotation, certificateNameOf, podNameOf, putAwayAnnotation } from "./names.ts";
import { exchangeOf, plainOidc } from "./oidc.ts";
import { leastIdleMs } from "./plan.ts";
import { podFacts } from "./pod-facts.ts";
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
import {
  hasWork,
  idleSince,
  isAsleep,
  isFailed,
  isPrepared,
  isPutAway,
  runOf,
  sinceTransitionMs,
  type Inputs,
  type StatefulSetFacts,
  type UpdateFacts,
  type WorkspaceView,
} from "./view.ts";

export interface WorkspaceSources {
  readonly workspaces: Store<Workspace>;
  /** With `updateIndexers` of the Update controller. */
  readonly updates: Store<Update>;
  readonly statefulSets: Store<Known<StatefulSet>>;
  /** With `podIndexers`. */
  readonly pods: Store<Known<Pod>>;
  readonly programs: Store<Program>;
  readonly client: Client;
  readonly authority: Pick<Authority, "workspaceCertificate">;
  readonly preparations: Pick<Preparations, "hasAnswered">;
  /** Without it a Workspace that signs in as a GitHub App is told so. */
  readonly githubApps?: GitHubAppTokens;
  readonly settings: WorkspaceSettings;
  /** Workspaces that are not to be put to sleep, whoever may need their place. */
  readonly sleepless: ReadonlySet<Key>;
}

const unschedulableIndex = "workspace/unschedulable";

export const podIndexers = {
  [unschedulableIndex]: (pod: Known<Pod>): string[] => (isUnschedulable(pod) ? ["yes"] : []),
};

export interface Look {
  readonly now: number;
  readonly signal: AbortSignal;
  readonly retryAt?: number;
  readonly writtenGeneration?: number;
}

export async function observeWorkspace(
  sources: WorkspaceSources,
  key: Key,
  look: Look,
): Promise<WorkspaceView | undefined> {
  const workspace = sources.workspaces.get(key);
  if (!workspace) return undefined;
  const { name = "", namespace = "" } = workspace.metadata;
  const spec = normaliseWorkspace(workspace);
  const statefulSet = sources.statefulSets.get(refKey({ namespace, name: statefulSetNameOf(name) }));
  const pod = podOf(sources, workspace);
  const idleTimeoutMs = (spec.ok ? spec.value.idleTimeoutMs : undefined) ?? sources.settings.idleTimeoutMs;
  const view: WorkspaceView = {
    now: look.now,
    workspace,
    spec,
    ...(statefulSet && { statefulSet: statefulSetFacts(statefulSet) }),
    ...(pod && { pod: podFacts(pod, { namespace, name }, sources.preparations) }),
    updates: updatesOf(sources, workspace, pod),
    idleTimeoutMs,
    yielding: yieldingTo(sources, look.now),
    ...(look.retryAt !== undefined && { retryAt: look.retryAt }),
    ...(look.writtenGeneration !== undefined && { writtenGeneration: look.writtenGeneration }),
  };
  if (!spec.ok || !needsInputs(view)) return view;
  return { ...view, inputs: await readInputs(sources, { view, normal: spec.value, signal: look.signal }) };
}

/** Asleep nothing is decided by them; and while an Update runs, whatever they say has to wait. */
function needsInputs(view: WorkspaceView): boolean {
  const isResting = isAsleep(view) || isPutAway(view);
  return !view.workspace.metadata.deletionTimestamp && !isResting && !(runOf(view) && view.pod?.isUp);
}

function podOf({ pods }: WorkspaceSources, { metadata }: Workspace): Known<Pod> | undefined {
  const { name = "", namespace = "" } = metadata;
  return pods.get(refKey({ namespace, name: podNameOf(name) }));
}

export function statefulSetFacts({ metadata, spec, status }: Known<StatefulSet>): StatefulSetFacts {
  const isSeen = status?.observedGeneration === metadata.generation;
  const putAwayFor = metadata.annotations?.[putAwayAnnotation];
  return {
    uid: metadata.uid ?? "",
    generation: metadata.generation ?? 0,
    replicas: spec?.replicas ?? 1,
    builtHash: metadata.annotations?.[builtHashAnnotation] ?? "",
    ...(isSeen && status?.updateRevision && { updateRevision: status.updateRevision }),
    isDeleting: metadata.deletionTimestamp !== undefined,
    ...(putAwayFor !== undefined && { putAwayFor: Number(putAwayFor) }),
  };
}

function updatesOf({ updates }: WorkspaceSources, workspace: Workspace, pod: Known<Pod> | undefined): UpdateFacts[] {
  return updates.byIndex(workspaceIndex, keyOf(workspace)).map((update) => updateFacts(update, pod));
}

export function updateFacts(update: Update, pod: Known<Pod> | undefined): UpdateFacts {
  const name = update.metadata.name ?? "";
  const { endTime, podUid } = update.status ?? {};
  if (isComplete(update)) {
    const endedAt = Date.parse(endTime ?? "");
    return { name, phase: "ended", ...(!Number.isNaN(endedAt) && { endedAt }) };
  }
  return { name, phase: podUid !== undefined && podUid === pod?.metadata.uid ? "onPod" : "waiting" };
}

/** Looked for only when pods find no node: of those that have had nothing to do for longest, one for each such pod. */
function yieldingTo(sources: WorkspaceSources, now: number): Key[] {
  const waiting = sources.pods.byIndex(unschedulableIndex, "yes").filter((pod) => wantsRoom(pod, now));
  if (waiting.length === 0) return [];
  // Those that are ending make room already.
  const ending = sources.pods.list().filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
  return sources.workspaces
    .list()
    .map((workspace) => ({ key: keyOf(workspace), since: idleWithPodSince(sources, workspace) ?? Infinity }))
    .filter(({ since }) => now - since >= leastIdleMs)
    .toSorted((a, b) => a.since - b.since)
    .slice(0, Math.max(0, waiting.length - ending.length))
    .map(({ key }) => key);
}

/** A pod that no node could ever take shall not keep others from their sleep's usual time. */
const roomMs = 10 * 60_000;

/** Others can help with what is used up, not with taints or selectors. */
function wantsRoom({ metadata, status }: Known<Pod>, now: number): boolean {
  const message = status?.conditions?.find(({ type }) => type === "PodScheduled")?.message ?? "";
  const age = now - Date.parse(metadata.creationTimestamp ?? "");
  return /Insufficient|Too many pods/.test(message) && !(age > roomMs);
}

function idleWithPodSince(sources: WorkspaceSources, workspace: Workspace): number | undefined {
  const pod = podOf(sources, workspace);
  const timeout = workspace.spec?.idleTimeoutSeconds ?? sources.settings.idleTimeoutMs;
  if (!pod || pod.metadata.deletionTimestamp || isUnschedulable(pod) || timeout === 0) return undefined;
  if (!(isPrepared(workspace) || isFailed(workspace)) || sources.sleepless.has(keyOf(workspace))) return undefined;
  const updates = updatesOf(sources, workspace, pod);
  return hasWork(updates) ? undefined : idleSince(workspace, updates);
}

interface Reader {
  readonly view: WorkspaceView;
  readonly normal: NormalWorkspace;
  readonly signal: AbortSignal;
}

async function readInputs(sources: WorkspaceSources, reader: Reader): Promise<Inputs> {
  const { view, normal } = reader;
  const { requested, secrets } = await readRequest(sources, reader);
  const pod = await readPod(sources, reader);
  if (!pod.ok) return { pod, missing: [], requested, read: watched(normal, secrets) };
  const { template, references, readings } = pod;
  const referencesHash = hashReferences(references, readings);
  const objects = buildObjects({ workspace: view.workspace, normal, template, referencesHash });
  const read = watched(normal, [...secrets, ...readings]);
  if (typeof objects === "string") return { pod: { ok: false, problems: [objects] }, missing: [], requested, read };
  const losable = template.spec && losableBackend(template.spec, readings);
  const certificate = await dueCertificate(sources, reader);
  const notAdmitted = await admission(sources, reader, template);
  return {
    pod: { ok: true, template, objects },
    missing: missingReferences(references, readings),
    requested,
    read,
    ...(certificate && { certificate }),
    ...(losable !== undefined && { losable }),
    ...(notAdmitted !== undefined && { notAdmitted }),
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
async function readPod(sources: WorkspaceSources, reader: Reader): Promise<ReadPod> {
  const { normal, view } = reader;
  const { settings } = sources;
  const { uid } = view.workspace.metadata;
  const parts = { settings, ...(uid !== undefined && { uid }) };
  const plain = buildPodTemplate(normal, parts);
  if (!plain.ok) return plain;
  const { spec } = plain.template;
  if (!spec) return { ok: true, template: plain.template, references: [], readings: [] };
  const references = referencesOf(spec);
  const readings = await readAll(sources, reader, references);
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
  sources: WorkspaceSources,
  reader: Reader,
): Promise<{ readonly requested: Requested; readonly secrets: Readings }> {
  const { normal } = reader;
  const names = secretsOf(normal).map((name) => ({ kind: "Secret" as const, name }));
  const secrets = await readAll(sources, reader, names);
  const program = normal.source.kind === "program" ? programOf(sources, normal, normal.source.name) : undefined;
  const appToken = await readAppToken(sources, reader, secrets);
  const { maxUnpackedBytes } = sources.settings;
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

function programOf({ programs }: WorkspaceSources, { namespace }: NormalWorkspace, name: string): Program | undefined {
  return programs.get(refKey({ namespace, name }));
}

async function readAppToken(
  { githubApps }: WorkspaceSources,
  { normal, signal }: Reader,
  secrets: Readings,
): Promise<AppToken | undefined> {
  const app = githubAppOf(normal, secrets);
  if (!app || !githubApps) return undefined;
  return app.ok ? await githubApps.tokenFor(app.value, signal) : app;
}

/** Each object once, however many read it. */
async function readAll(
  { client }: WorkspaceSources,
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

async function dueCertificate({ client, authority }: WorkspaceSources, { normal, signal }: Reader) {
  const { name, namespace } = normal;
  const secret = await client.find(builtin.secrets, { namespace, name: certificateNameOf(name) }, { signal });
  const existing = secret && certificateIn(secret);
  const certificate = await authority.workspaceCertificate({ namespace, name }, existing);
  return certificate === existing ? undefined : certificate;
}

/** How long a StatefulSet may take to make a pod before the API server is asked what is in its way. */
const podMissingMs = 10_000;

/** The StatefulSet's controller keeps to itself why no pod comes about: a dry run tells. */
async function admission(
  { client }: WorkspaceSources,
  { view, normal, signal }: Reader,
  template: PodTemplateSpec,
): Promise<string | undefined> {
  if (view.pod || !view.statefulSet?.updateRevision || sinceTransitionMs(view) < podMissingMs) return undefined;
  try {
    await client.create(builtin.pods, podFor(normal, template), { dryRun: true, signal });
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500 || isOurOwnLack(error)) return undefined;
    return error.reason === "AlreadyExists" ? undefined : error.explanation;
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
export function isOurOwnLack({ status, explanation }: ApiError): boolean {
  return status === 401 || (status === 403 && explanation.includes("cannot create resource"));
}
