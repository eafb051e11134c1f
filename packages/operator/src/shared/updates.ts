/** Reading Updates: by their Workspace, from the store or from the API server. */
import {
  isComplete,
  parseDuration,
  stackKind,
  triggerAnnotation,
  workspaceKind,
  workspaceNameOf,
  type Stack,
  type Update,
  type Workspace,
} from "@pko/api";
import {
  isOwnedBy,
  keyOf,
  metadataOf,
  refKey,
  type Client,
  type Key,
  type KubeObject,
  type ObjectRef,
  type Store,
} from "@pko/kube";

import { updates } from "../kinds.ts";
import { findCondition, isConditionTrue } from "./objects/conditions.ts";
import { parseTimestamp } from "./parse-timestamp.ts";

/** The Go operator records no end time if it did not see the end. */
export function endTimeOf(update: Update): string | undefined {
  const ended = ["Complete", "Failed"].find((type) => isConditionTrue(update, type));
  return update.status?.endTime ?? (ended && findCondition(update, ended)?.lastTransitionTime);
}

export const workspaceIndex = "update/workspace";
export const uidIndex = "update/uid";

export const updateIndexers = {
  [workspaceIndex]: (update: Update): string[] => [workspaceKeyOf(update)],
  // Only a run that has not ended is found by its Update's UID.
  [uidIndex]: (update: Update): string[] =>
    update.metadata.uid === undefined || isAtRest(update) ? [] : [update.metadata.uid],
};

/**
 * Until when nothing is due for an Update that has ended and whose result is recorded: until its TTL expires. Undefined for
 * others. With a long history, most Updates are at rest, and the store archives them.
 */
export function restsUntil(update: Update): number | undefined {
  return isAtRest(update) ? (expiryOf(update) ?? Infinity) : undefined;
}

function isAtRest(update: Update): boolean {
  const { finalizers = [], deletionTimestamp } = update.metadata;
  return isComplete(update) && finalizers.length === 0 && deletionTimestamp === undefined && !isReportDue(update);
}

/** Something newer replaced it before it started. */
export const isWithdrawn = (update: Update): boolean =>
  findCondition(update, "Failed")?.reason === "Canceled" && update.status?.startTime === undefined;

/** Whether a forge still shows that a complete Update is running or that its plan is not applied, or has not received its result. */
export function isReportDue({ status }: Update): boolean {
  const { due = false, state, problem } = status?.report ?? {};
  return due || problem !== undefined || state === "running" || state === "pending";
}

/**
 * The commit that an Update deploys or previews. A drift check and a destroy are not about a commit. The revision of a Flux source
 * has the branch, too: `main@sha1:…`.
 */
export function commitOf({ metadata, spec }: Update): string | undefined {
  if (spec?.previewOnly || (spec?.type !== "up" && spec?.type !== "preview")) return undefined;
  const revision = revisionIn(metadata.annotations?.[triggerAnnotation]);
  return /^(?:.*@?sha(?:1|256):)?([0-9a-f]{40}|[0-9a-f]{64})$/.exec(revision)?.[1];
}

function revisionIn(trigger = "{}"): string {
  try {
    const { revision } = JSON.parse(trigger) as { readonly revision?: unknown };
    return typeof revision === "string" ? revision : "";
  } catch {
    return "";
  }
}

/** When the TTL of a complete Update expires; undefined if it has none, or one without a known end. */
export function expiryOf(update: Update): number | undefined {
  const { ttlAfterCompleted } = update.spec ?? {};
  const ttlMs = ttlAfterCompleted === undefined ? undefined : parseDuration(ttlAfterCompleted);
  const endedAt = parseTimestamp(endTimeOf(update));
  return ttlMs === undefined ? undefined : (endedAt ?? 0) + ttlMs;
}

export function workspaceKeyOf({ metadata, spec }: Update): Key {
  return refKey({ namespace: metadata.namespace ?? "", name: spec?.workspaceName ?? "" });
}

/**
 * Whether the operator has created the Update for the Stack: anybody who may create Updates can name its UID among the owners, so
 * the controller must be its Workspace, or the Stack itself, as the Go operator set it (docs/adr/0011). The UID of the Workspace is not
 * compared: another one of the same name may have replaced it. When a Workspace is deleted, the garbage collector removes the reference
 * to it, and the Update stays, without a controller.
 */
export function isUpdateOf(update: Update, { metadata }: Pick<Stack, "metadata">): boolean {
  const { name = "", uid = "" } = metadata;
  const controller = controllerOf(update);
  if (!isOwnedBy(update, { uid })) return false;
  if (!controller) return update.spec?.workspaceName === workspaceNameOf(name);
  return controller.uid === uid || isWorkspaceOf(controller, name);
}

/** The same for a Stack that no longer exists: the garbage collector may have removed the reference to it. */
export function isUpdateOfFormer(update: Update, name: string): boolean {
  const stacks = update.metadata.ownerReferences?.filter(({ kind }) => kind === stackKind.kind) ?? [];
  return isWorkspaceOf(controllerOf(update), name) && stacks.every((each) => each.name === name);
}

type OwnerReference = NonNullable<Update["metadata"]["ownerReferences"]>[number];

const controllerOf = ({ metadata }: Update): OwnerReference | undefined =>
  metadata.ownerReferences?.find(({ controller }) => controller);

const isWorkspaceOf = (owner: OwnerReference | undefined, stack: string): boolean =>
  owner?.kind === workspaceKind.kind && owner.name === workspaceNameOf(stack);

/** Times have a resolution of a second. An Update is created when the one before it has ended. */
export function isLater(other: Update, update: Update): boolean {
  const [one, two] = [other, update].map(({ metadata }) => metadata.creationTimestamp ?? "");
  if (one !== two) return (one ?? "") > (two ?? "");
  if (isComplete(other) !== isComplete(update)) return isComplete(update);
  const [oneEnd, twoEnd] = [other, update].map(({ metadata, status }) => `${status?.endTime ?? ""} ${metadata.name}`);
  return (oneEnd ?? "") > (twoEnd ?? "");
}

export const stacksOf = ({ spec }: Workspace): string[] => spec?.stacks?.map(({ name }) => name) ?? [];

/** An Update whose stack its Workspace does not have can never run there: nothing waits for it. */
export function hasStackOf(workspace: Workspace, { spec }: Update): boolean {
  const stacks = stacksOf(workspace);
  return stacks.length === 0 || stacks.includes(spec?.stackName ?? "");
}

export interface UpdateReader {
  readonly client: Client;
  /** The store: an Update that it has in the version that the API server reports is not fetched again. */
  readonly updates: Store<Update>;
  readonly signal: AbortSignal;
}

/** The unfinished Updates of a Workspace, read from the API server: an Update that a stale store does not show may run. */
export async function unfinishedIn(reader: UpdateReader, { namespace = "", name }: ObjectRef): Promise<Update[]> {
  const { client, signal } = reader;
  const { items } = await client.list(metadataOf(updates), { namespace, signal });
  const unfinished: Update[] = [];
  for (const item of items) {
    const update = await fetchUpdate(reader, item);
    if (update?.spec?.workspaceName === name && !isComplete(update)) unfinished.push(update);
  }
  return unfinished;
}

async function fetchUpdate(
  { client, updates: store, signal }: UpdateReader,
  item: KubeObject,
): Promise<Update | undefined> {
  const { namespace = "", name = "", resourceVersion } = item.metadata;
  const known = store.get(keyOf(item));
  if (known?.metadata.resourceVersion === resourceVersion) return known;
  return await client.find(updates, { namespace, name }, { signal });
}
