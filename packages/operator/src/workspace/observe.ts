/** All reads of the Workspace controller. What can be missing is data; Secrets are read by name, and only when needed. */
import { normaliseWorkspace, statefulSetNameOf, workspaceKind, type Update, type Workspace } from "@pko/api";
import { asOwner, builtin, judgeOwnership, keyOf, refKey, type Key, type Known, type Store } from "@pko/kube";
import type { CertificateState } from "@pko/rpc/pki";
import type { StatefulSet } from "kubernetes-types/apps/v1";
import type { Pod } from "kubernetes-types/core/v1";

import type { Authority, Preparations, Runs } from "../agents/agents.ts";
import { isComplete } from "../update/conditions.ts";
import { hasStackOf, unfinishedIn, workspaceIndex, type UpdateReader } from "../update/observe.ts";
import { isUnschedulable } from "./explain-pod.ts";
import { certificateIn } from "./build-objects.ts";
import { builtHashAnnotation, certificateNameOf, podNameOf, putAwayAnnotation } from "./names.ts";
import { readInputs, type InputWorld } from "./observe-inputs.ts";
import { defaultLostNodeMs } from "../lost-node.ts";
import { conflictMessage } from "../ownership.ts";
import { podFacts } from "./pod-facts.ts";
import { judgePod, podOwner } from "./pod-owner.ts";
import { wantsRoom, yieldingTo, type Tenant } from "./room.ts";
import {
  isAsleep,
  isPutAway,
  runOf,
  type PodFacts,
  type StatefulSetFacts,
  type UpdateFacts,
  type WorkspaceView,
} from "./view.ts";

export interface WorkspaceWorld extends InputWorld {
  readonly workspaces: Store<Workspace>;
  /** With `updateIndexers` of the Update controller. */
  readonly updates: Store<Update>;
  readonly statefulSets: Store<Known<StatefulSet>>;
  /** With `podIndexers`. */
  readonly pods: Store<Known<Pod>>;
  readonly authority: Pick<Authority, "assess">;
  readonly preparations: Pick<Preparations, "hasAnswered">;
  readonly runs: Pick<Runs, "find">;
  /** Workspaces that are not to be put to sleep, whoever may need their place. */
  readonly sleepless: ReadonlySet<Key>;
}

const unschedulableIndex = "workspace/unschedulable";

export const podIndexers = {
  [unschedulableIndex]: (pod: Known<Pod>): string[] => (isUnschedulable(pod) ? ["yes"] : []),
};

/** With what earlier passes have left in memory. */
interface Moment extends Pick<WorkspaceView, "retryAt" | "writtenGeneration" | "conflictSince"> {
  readonly now: number;
  readonly signal: AbortSignal;
}

/** Undefined for a Workspace that is gone. */
export async function observeWorkspace(
  world: WorkspaceWorld,
  key: Key,
  moment: Moment,
): Promise<WorkspaceView | undefined> {
  const workspace = world.workspaces.get(key);
  if (!workspace) return undefined;
  const spec = normaliseWorkspace(workspace);
  const statefulSet = statefulSetOf(world, workspace);
  const pod = podOf(world, workspace);
  const idleTimeoutMs = (spec.ok ? spec.value.idleTimeoutMs : undefined) ?? world.settings.idleTimeoutMs;
  const view: WorkspaceView = {
    now: moment.now,
    workspace,
    spec,
    ...(statefulSet && { statefulSet: statefulSetFacts(statefulSet) }),
    ...(pod && { pod: podFactsOf(world, workspace, pod) }),
    updates: updatesOf(world, workspace, pod),
    idleTimeoutMs,
    lostNodeAfterMs: world.settings.lostNodeAfterMs ?? defaultLostNodeMs,
    yielding: yielding(world, moment.now),
    ...(moment.retryAt !== undefined && { retryAt: moment.retryAt }),
    ...(moment.writtenGeneration !== undefined && { writtenGeneration: moment.writtenGeneration }),
    ...(moment.conflictSince !== undefined && { conflictSince: moment.conflictSince }),
  };
  const { signal } = moment;
  const certificate = needsCertificate(view) && (await readCertificate(world, view, signal));
  const seen = certificate ? { ...view, certificate } : view;
  if (!spec.ok || !needsInputs(view)) return seen;
  return { ...seen, inputs: await readInputs(world, { view: seen, normal: spec.value, signal }) };
}

/** A pod that lives needs one that is trusted, above all while an Update runs in it: its result is fetched by it. */
function needsCertificate(view: WorkspaceView): boolean {
  if (view.workspace.metadata.deletionTimestamp) return false;
  return view.pod !== undefined || (view.spec.ok && needsInputs(view));
}

async function readCertificate(
  { client, authority }: WorkspaceWorld,
  { workspace }: WorkspaceView,
  signal: AbortSignal,
): Promise<CertificateState> {
  const { name = "", namespace = "" } = workspace.metadata;
  const secret = await client.find(builtin.secrets, { namespace, name: certificateNameOf(name) }, { signal });
  return await authority.assess(secret && certificateIn(secret));
}

/** Asleep nothing is decided by them; and while an Update runs, whatever they say has to wait. */
function needsInputs(view: WorkspaceView): boolean {
  const isResting = isAsleep(view) || isPutAway(view);
  const run = runOf(view);
  const isRunning = run !== undefined && !run.isUnprepared && view.pod?.isUp;
  return !view.workspace.metadata.deletionTimestamp && !isResting && !isRunning;
}

/** One of the name that belongs to somebody else is none. */
function statefulSetOf({ statefulSets }: WorkspaceWorld, workspace: Workspace): Known<StatefulSet> | undefined {
  const { name = "", namespace = "" } = workspace.metadata;
  const found = statefulSets.get(refKey({ namespace, name: statefulSetNameOf(name) }));
  return judgeOwnership(found, asOwner(workspaceKind, workspace)).kind === "ours" ? found : undefined;
}

/**
 * A pod of the name that belongs to somebody else is none. While a StatefulSet is missing, its pod is still here. A pod in
 * which an Update runs counts whoever owns it now: `kubectl delete --cascade=orphan` removes the owner of a running pod.
 */
function podOf(world: WorkspaceWorld, workspace: Workspace): Known<Pod> | undefined {
  const { name = "", namespace = "" } = workspace.metadata;
  const pod = world.pods.get(refKey({ namespace, name: podNameOf(name) }));
  if (!pod) return undefined;
  const set = world.statefulSets.get(refKey({ namespace, name: statefulSetNameOf(name) }));
  const { kind } = judgePod(pod, podOwner(name, set?.metadata.uid));
  const isOurs = kind === "former" || (kind === "ours" && statefulSetOf(world, workspace) !== undefined);
  return isOurs || hasRun(world, workspace, pod) ? pod : undefined;
}

function hasRun({ updates }: WorkspaceWorld, workspace: Workspace, { metadata }: Known<Pod>): boolean {
  return updates
    .byIndex(workspaceIndex, keyOf(workspace))
    .some((update) => !isComplete(update) && update.status?.podUid === metadata.uid);
}

/** The garbage collector deletes a pod of an earlier StatefulSet, even if it has not begun to: nothing may start in it. */
function podFactsOf(world: WorkspaceWorld, workspace: Workspace, pod: Known<Pod>): PodFacts {
  const { name = "", namespace = "" } = workspace.metadata;
  const facts = podFacts(pod, { namespace, name }, world.preparations);
  const set = statefulSetOf(world, workspace);
  const ownership = judgePod(pod, podOwner(name, set?.metadata.uid));
  if (!set || ownership.kind !== "former" || facts.isDeleting) return facts;
  const message = conflictMessage([ownership], { kind: workspaceKind.kind, name });
  return { ...facts, isDeleting: true, explanation: { message, stuck: false } };
}

function statefulSetFacts({ metadata, spec, status }: Known<StatefulSet>): StatefulSetFacts {
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

interface Place {
  readonly workspace: Workspace;
  readonly pod: Known<Pod> | undefined;
  readonly runs?: WorkspaceWorld["runs"];
}

function updatesOf(
  { updates, runs }: WorkspaceWorld,
  workspace: Workspace,
  pod: Known<Pod> | undefined,
): UpdateFacts[] {
  return factsOf(updates.byIndex(workspaceIndex, keyOf(workspace)), { workspace, pod, runs });
}

/** Those that can never run here keep no pod awake. */
function factsOf(updates: readonly Update[], place: Place): UpdateFacts[] {
  return updates.flatMap((update) => {
    const facts = updateFacts(update, place);
    return facts.phase === "waiting" && !hasStackOf(place.workspace, update) ? [] : [facts];
  });
}

/**
 * The Updates that have not ended, and which of them are in the pod, by the word of the API server. Undefined where there is
 * no pod in which anything could run.
 */
export async function unfinishedNow(reader: UpdateReader, workspace: Workspace): Promise<UpdateFacts[] | undefined> {
  const { client, signal } = reader;
  const { name = "", namespace = "" } = workspace.metadata;
  const pod = await client.find(builtin.pods, { namespace, name: podNameOf(name) }, { signal });
  if (!pod || pod.status?.phase === "Failed" || pod.status?.phase === "Succeeded") return undefined;
  return factsOf(await unfinishedIn(reader, { namespace, name }), { workspace, pod });
}

function updateFacts(update: Update, { pod, runs }: Place): UpdateFacts {
  const name = update.metadata.name ?? "";
  const { endTime, podUid } = update.status ?? {};
  if (isComplete(update)) {
    const endedAt = Date.parse(endTime ?? "");
    return { name, phase: "ended", ...(!Number.isNaN(endedAt) && { endedAt }) };
  }
  if (podUid === undefined || podUid !== pod?.metadata.uid) return { name, phase: "waiting" };
  const run = runs?.find(podUid, update.metadata.uid ?? "");
  const isUnprepared = run?.state === "refused" && run.code === "unprepared";
  return { name, phase: "onPod", ...(isUnprepared && { isUnprepared }) };
}

/** Looked for only when pods find no node. */
function yielding(world: WorkspaceWorld, now: number): Key[] {
  const waiting = world.pods.byIndex(unschedulableIndex, "yes").filter((pod) => wantsRoom(pod, now));
  if (waiting.length === 0) return [];
  // Those that are ending make room already.
  const ending = world.pods.list().filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
  const tenants = world.workspaces.list().flatMap((workspace) => tenantOf(world, workspace) ?? []);
  return yieldingTo(waiting.length - ending.length, tenants, now);
}

function tenantOf(world: WorkspaceWorld, workspace: Workspace): Tenant | undefined {
  const pod = podOf(world, workspace);
  if (!pod) return undefined;
  const { idleTimeoutSeconds } = workspace.spec ?? {};
  return {
    workspace,
    pod,
    updates: updatesOf(world, workspace, pod),
    idleTimeoutMs: idleTimeoutSeconds === undefined ? world.settings.idleTimeoutMs : idleTimeoutSeconds * 1000,
    isSleepless: world.sleepless.has(keyOf(workspace)),
  };
}
