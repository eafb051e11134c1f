/** All that an Update's plan needs to know, read from the stores and from the runs that are followed. */
import { isDeepStrictEqual } from "node:util";
import {
  normaliseUpdate,
  parseDuration,
  pulumiContainer,
  statefulSetNameOf,
  type Update,
  type Workspace,
} from "@pko/api";
import {
  asOwner,
  builtin,
  findOwnership,
  keyOf,
  metadataOf,
  refKey,
  type Client,
  type Key,
  type Known,
  type KubeObject,
  type ObjectRef,
  type Store,
} from "@pko/kube";
import { assertNever } from "@pko/rpc";
import type { Pod } from "kubernetes-types/core/v1";

import { agentPort, type Projects, type Runs } from "../agents/agents.ts";
import { updates, workspaces } from "../kinds.ts";
import { defaultLostNodeMs, overduePod } from "../lost-node.ts";
import type { Clearances } from "../workspace/clearances.ts";
import { judgePod, podOwner } from "../workspace/pod-owner.ts";
import { isComplete } from "./conditions.ts";
import { lostRunsOf } from "./lost-runs.ts";
import type { Proof } from "./plan.ts";
import type { Address, PodFacts, UpdateView, WorkspaceFacts } from "./view.ts";

export interface UpdateWorld {
  /** With `updateIndexers`. */
  readonly updates: Store<Update>;
  readonly workspaces: Store<Workspace>;
  readonly pods: Store<Known<Pod>>;
  readonly runs: Pick<Runs, "look">;
  readonly projects: Projects;
  readonly clearances?: Pick<Clearances, "has">;
  /** `defaultLostNodeMs` when absent. */
  readonly lostNodeAfterMs?: number;
}

export const workspaceIndex = "update/workspace";
export const uidIndex = "update/uid";

export const updateIndexers = {
  [workspaceIndex]: (update: Update): string[] => [workspaceKeyOf(update)],
  [uidIndex]: ({ metadata }: Update): string[] => (metadata.uid === undefined ? [] : [metadata.uid]),
};

export function workspaceKeyOf({ metadata, spec }: Update): Key {
  return refKey({ namespace: metadata.namespace ?? "", name: spec?.workspaceName ?? "" });
}

const podSuffix = "-0";

const podNameOf = (workspaceName: string): string => statefulSetNameOf(workspaceName) + podSuffix;

/** The workspace of a pod, by the pod's name. */
export function workspaceOfPod({ metadata }: Known<Pod>): Key | undefined {
  const suffix = podNameOf("");
  if (!metadata.name?.endsWith(suffix)) return undefined;
  return refKey({ namespace: metadata.namespace ?? "", name: metadata.name.slice(0, -suffix.length) });
}

interface Moment {
  readonly now: number;
}

/** Undefined for an Update that is gone. */
export function observeUpdate(world: UpdateWorld, key: Key, { now }: Moment): UpdateView | undefined {
  const update = world.updates.get(key);
  if (!update) return undefined;
  const { namespace = "" } = update.metadata;
  const { workspaceName = "", ttlAfterCompleted } = update.spec ?? {};
  const workspace = world.workspaces.get(workspaceKeyOf(update));
  const facts = workspaceFacts(workspace, update);
  const pod = podOf(world, update);
  const run = world.runs.look(update.status?.podUid ?? "", update.metadata.uid ?? "");
  const project = world.projects.projectOf({ namespace, name: workspaceName });
  return {
    now,
    update,
    spec: normaliseUpdate(update),
    ...definedOnly({
      ttlMs: ttlAfterCompleted === undefined ? undefined : parseDuration(ttlAfterCompleted),
      pod: pod && podFacts(pod, { namespace, name: workspaceName }, addressOf(workspace)),
      run,
      project,
      before: firstInLine(world.updates, update, workspace),
      expectedResources: expectedResources(world.updates, update),
      logLevel: workspace?.spec?.pulumiLogLevel,
    }),
    workspace: facts,
    lostNodeAfterMs: world.lostNodeAfterMs ?? defaultLostNodeMs,
    isCleared: world.clearances?.has(workspaceKeyOf(update), key) ?? true,
    lostRuns: lostRunsOf(update, world.updates.byIndex(workspaceIndex, workspaceKeyOf(update))),
  };
}

/**
 * The pod in which the Update runs, whoever owns it now; before it runs, only a pod of a StatefulSet of the workspace's
 * name. Which StatefulSet that is, `isStillReady` checks.
 */
function podOf({ pods }: UpdateWorld, { metadata, spec, status }: Update): Known<Pod> | undefined {
  const { workspaceName = "" } = spec ?? {};
  const pod = pods.get(refKey({ namespace: metadata.namespace ?? "", name: podNameOf(workspaceName) }));
  if (!pod || (status?.podUid !== undefined && pod.metadata.uid === status.podUid)) return pod;
  // Without a UID to compare with, "former" says that kind and name are right.
  return judgePod(pod, podOwner(workspaceName)).kind === "former" ? pod : undefined;
}

/**
 * Whether the API server still says what the stores said of the workspace and its pod. The stores of two kinds are not
 * of one moment: an Update may be seen before the change of its Workspace that it is to run.
 */
export async function isStillReady(client: Client, view: UpdateView, signal: AbortSignal): Promise<boolean> {
  const { namespace = "" } = view.update.metadata;
  const { workspaceName: name = "" } = view.update.spec ?? {};
  const [workspace, pod] = await Promise.all([
    client.find(workspaces, { namespace, name }, { signal }),
    client.find(builtin.pods, { namespace, name: podNameOf(name) }, { signal }),
  ]);
  const facts = pod && podFacts(pod, { namespace, name }, addressOf(workspace));
  const isSame =
    isDeepStrictEqual(workspaceFacts(workspace, view.update), view.workspace) && isDeepStrictEqual(facts, view.pod);
  return isSame && (await isPodOf({ client, signal }, workspace, pod));
}

/** Whether the pod's controller is the StatefulSet whose controller is the Workspace. */
async function isPodOf(
  { client, signal }: Pick<UpdateReader, "client" | "signal">,
  workspace: Workspace | undefined,
  pod: Known<Pod> | undefined,
): Promise<boolean> {
  if (!workspace || !pod) return false;
  const { name = "", namespace = "" } = workspace.metadata;
  const set = { resource: builtin.statefulSets, ref: { namespace, name: statefulSetNameOf(name) } };
  const found = await findOwnership({ client, owner: asOwner(workspaces, workspace), signal }, set);
  return found.kind === "ours" && judgePod(pod, podOwner(name, found.version.uid)).kind === "ours";
}

/** Whether the API server itself says what an Update is to be ended for. */
export async function isProven(
  client: Client,
  view: UpdateView,
  { proof, signal }: { readonly proof: Proof; readonly signal: AbortSignal },
): Promise<boolean> {
  const { namespace = "" } = view.update.metadata;
  const { workspaceName: name = "" } = view.update.spec ?? {};
  switch (proof) {
    case "podGone": {
      const pod = await client.find(builtin.pods, { namespace, name: podNameOf(name) }, { signal });
      return !pod || podFacts(pod, { namespace, name }, undefined)?.agent.uid !== view.update.status?.podUid;
    }
    case "stackUnknown": {
      const workspace = await client.find(workspaces, { namespace, name }, { signal });
      return isDeepStrictEqual(workspaceFacts(workspace, view.update), view.workspace);
    }
    default:
      return assertNever(proof);
  }
}

export interface UpdateReader {
  readonly client: Client;
  /** The store: what it has in the version that the API server names is not fetched again. */
  readonly updates: Store<Update>;
  readonly signal: AbortSignal;
}

/** Of a Workspace, by the word of the API server: what a store does not show may run all the same. */
export async function unfinishedIn(reader: UpdateReader, { namespace = "", name }: ObjectRef): Promise<Update[]> {
  const { client, signal } = reader;
  const { items } = await client.list(metadataOf(updates), { namespace, signal });
  const unfinished: Update[] = [];
  for (const item of items) {
    const update = await fetched(reader, item);
    if (update?.spec?.workspaceName === name && !isComplete(update)) unfinished.push(update);
  }
  return unfinished;
}

async function fetched(
  { client, updates: store, signal }: UpdateReader,
  item: KubeObject,
): Promise<Update | undefined> {
  const { namespace = "", name = "", resourceVersion } = item.metadata;
  const known = store.get(keyOf(item));
  if (known?.metadata.resourceVersion === resourceVersion) return known;
  return await client.find(updates, { namespace, name }, { signal });
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

function definedOnly<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>;
}

function workspaceFacts(workspace: Workspace | undefined, update: Update): WorkspaceFacts {
  if (!workspace) return { state: "missing" };
  if (workspace.metadata.deletionTimestamp !== undefined) return { state: "deleting" };
  const problem = problemOf(workspace);
  if (!hasStackOf(workspace, update)) {
    return { state: "otherStack", stacks: stacksOf(workspace), isPrepared: problem === undefined };
  }
  if (problem !== undefined) return { state: "notReady", message: problem };
  const address = addressOf(workspace);
  return address ? { state: "ready", address } : { state: "asleep" };
}

const stacksOf = ({ spec }: Workspace): string[] => spec?.stacks?.map(({ name }) => name) ?? [];

/** One whose stack its Workspace does not have can never run there: nobody waits for it. */
export function hasStackOf(workspace: Workspace, { spec }: Update): boolean {
  const stacks = stacksOf(workspace);
  return stacks.length === 0 || stacks.includes(spec?.stackName ?? "");
}

function problemOf({ metadata, status }: Workspace): string | undefined {
  if (status?.observedGeneration !== metadata.generation) return "its latest spec has not been looked at yet";
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  return ready?.status === "True" ? undefined : ready?.message || "it is being prepared";
}

/** `<ip>:<port>`, the ip in brackets when it is of the sixth version. */
function addressOf(workspace: Workspace | undefined): Address | undefined {
  const match = /^\[?([^\]]+)\]?:(\d+)$/.exec(workspace?.status?.address ?? "");
  return match?.[1] === undefined ? undefined : { host: match[1], port: Number(match[2]) };
}

function podFacts(
  pod: Known<Pod>,
  workspace: { readonly namespace: string; readonly name: string },
  address: Address | undefined,
): PodFacts | undefined {
  const { metadata, status } = pod;
  // Evicted pods stay as objects; nothing runs in them any more.
  if (status?.phase === "Failed" || status?.phase === "Succeeded") return undefined;
  const ip = status?.podIP ?? "";
  const container = status?.containerStatuses?.find(({ name }) => name === pulumiContainer);
  const overdue = overduePod(pod);
  return {
    isDeleting: metadata.deletionTimestamp !== undefined,
    ...(overdue && { overdue }),
    agent: {
      workspace,
      uid: metadata.uid ?? "",
      restarts: container?.restartCount ?? 0,
      ip,
      port: address?.host === ip ? address.port : agentPort,
    },
  };
}

/** There is one run at a time in a workspace: who runs, then who was made first. */
function firstInLine(all: Store<Update>, update: Update, workspace: Workspace | undefined): string | undefined {
  if (update.status?.podUid !== undefined) return undefined;
  const rivals = all
    .byIndex(workspaceIndex, workspaceKeyOf(update))
    .filter((other) => other.metadata.uid !== update.metadata.uid && !isComplete(other));
  const running = rivals.find((other) => other.status?.podUid !== undefined);
  if (running) return running.metadata.name;
  const earlier = rivals.filter(
    (other) =>
      other.metadata.deletionTimestamp === undefined &&
      isEarlier(other, update) &&
      (!workspace || hasStackOf(workspace, other)),
  );
  return earlier.toSorted((a, b) => (isEarlier(a, b) ? -1 : 1))[0]?.metadata.name;
}

function isEarlier(a: Update, b: Update): boolean {
  const order = ({ metadata }: Update): string => `${metadata.creationTimestamp ?? ""}/${metadata.name ?? ""}`;
  return order(a) < order(b);
}

const present = new Set(["same", "create", "update", "replace", "create-replacement", "import", "refresh", "read"]);

/** What the stack's last operation left there, so that a share of it can be told. */
function expectedResources(updates: Store<Update>, update: Update): number | undefined {
  if (update.status?.podUid === undefined || isComplete(update)) return undefined;
  const earlier = updates
    .byIndex(workspaceIndex, workspaceKeyOf(update))
    .filter(
      ({ spec, status }) =>
        spec?.stackName === update.spec?.stackName && spec?.type !== "preview" && status?.changes !== undefined,
    )
    .toSorted((a, b) => ((a.status?.endTime ?? "") < (b.status?.endTime ?? "") ? -1 : 1));
  const changes = earlier.at(-1)?.status?.changes ?? {};
  const total = Object.entries(changes).reduce((sum, [op, count]) => sum + (present.has(op) ? count : 0), 0);
  return total > 0 ? total : undefined;
}
