/** All writes of a Stack's reconcile. Each may be repeated: a pass that was cut short is simply made again. */
import { fieldManagers, labelsOfStack, reconcileRequestAnnotation, stackFinalizer, stackNameLabel } from "@pko/api";
import type { StackStatus, Update } from "@pko/api";
import {
  ApiError,
  applyOwned,
  asOwner,
  builtin,
  deleteOwned,
  isAlreadyExists,
  isConflict,
  isForbidden,
  isInvalid,
  isNamespaceTerminating,
  isNotFound,
  isOwnedBy,
  judgeOwnership,
  metadataOf,
  type Client,
  type ObjectRef,
  type Occupied,
  type OwnedTarget,
  type OwnedWrite,
  type Store,
} from "@pko/kube";
import { assertNever } from "@pko/rpc";

import { stacks, updates, workspaces } from "../kinds.ts";
import { isComplete } from "../update/conditions.ts";
import { unfinishedIn } from "../update/observe.ts";
import type { Outcome } from "./outcome.ts";
import { outputsSecret } from "./outputs.ts";
import type { Plan, Step } from "./plan.ts";
import type { StackView, UpdateView } from "./view.ts";

interface Performer {
  readonly client: Client;
  readonly updates: Store<Update>;
  readonly signal: AbortSignal;
}

export type Performed =
  /** `lost` tells of outputs that could not be kept. */
  | { readonly kind: "done"; readonly lost?: string }
  /** The world is not as it was seen: look again. */
  | { readonly kind: "stale" }
  /** The step is not made yet, and all else is as planned. `outcome` says why, where the plan could not know. */
  | { readonly kind: "later"; readonly afterMs: number; readonly outcome?: Outcome }
  /** Somebody else's object has the name of what was to be written. */
  | { readonly kind: "occupied"; readonly occupied: Occupied }
  /** The API server said no, and will again. */
  | { readonly kind: "refused"; readonly outcome: Outcome };

const done: Performed = { kind: "done" };
const stale: Performed = { kind: "stale" };

export async function performStack(performer: Performer, view: StackView, plan: Plan): Promise<Performed> {
  try {
    for (const update of plan.release) await releaseUpdate(performer, view, update);
    return await performStep(performer, view, plan.step);
  } catch (error) {
    if (isConflict(error)) return stale;
    const outcome = outcomeOf(error);
    if (outcome) return { kind: "refused", outcome };
    throw error;
  }
}

async function performStep(performer: Performer, view: StackView, step: Step): Promise<Performed> {
  switch (step.kind) {
    case "none":
      return done;
    case "addFinalizer":
      return await addFinalizer(performer, view);
    case "removeFinalizer":
      return await removeFinalizer(performer, view, step);
    case "note":
      return step.noted.update.type === "up" ? await keepOutputs(performer, view, step.noted.update.name) : done;
    case "writeOutputs":
      return await keepOutputs(performer, view, step.updateName);
    case "askPrerequisites":
      return await askPrerequisites(performer, view, step);
    case "applyWorkspace":
      return await applyWorkspace(performer, view, step);
    case "createUpdate":
      return await createUpdate(performer, view, step);
    case "withdrawUpdate":
      return await withdrawUpdate(performer, view, step);
    case "deleteWorkspace":
      return await deleteWorkspace(performer, view, step);
    default:
      return assertNever(step);
  }
}

function outcomeOf(error: unknown): Outcome | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const { status, explanation } = error;
  if (isNamespaceTerminating(error)) {
    const message = "The namespace is being deleted, so nothing can be created in it any more";
    return { kind: "stalled", reason: "NamespaceTerminating", message };
  }
  if (status === 422) return { kind: "stalled", reason: "SpecInvalid", message: explanation };
  // A quota, a webhook, a role that is too small.
  if (status !== 400 && status !== 403) return undefined;
  return { kind: "stalled", reason: "WorkspaceFailed", message: `The API server refuses: ${explanation}` };
}

const refOf = ({ stack }: StackView): { name: string; namespace: string } => ({
  name: stack.metadata.name ?? "",
  namespace: stack.metadata.namespace ?? "",
});

async function addFinalizer({ client, signal }: Performer, view: StackView): Promise<Performed> {
  const { apiVersion, kind } = stacks;
  const metadata = { ...refOf(view), uid: view.stack.metadata.uid ?? "", finalizers: [stackFinalizer] };
  await client.apply(stacks, { apiVersion, kind, metadata }, { fieldManager: fieldManagers.stackFinalizer, signal });
  return done;
}

/** After this the Stack is gone: what the stores say is confirmed by the API server first (docs/adr/0010). */
async function removeFinalizer(
  performer: Performer,
  view: StackView,
  { untouched }: Extract<Step, { kind: "removeFinalizer" }>,
): Promise<Performed> {
  const { client, signal } = performer;
  const stack = await client.find(stacks, refOf(view), { signal });
  if (!stack) return done;
  if (!isSameStack(stack, view)) return stale;
  if (untouched && (await hasChangedAnything(performer, view))) return stale;
  const unfinished = await unfinishedUpdate(performer, view);
  if (unfinished) return unfinished;
  const { resourceVersion, finalizers = [] } = stack.metadata;
  const left = finalizers.filter((finalizer) => finalizer !== stackFinalizer);
  const patch = { type: "merge", body: { metadata: { resourceVersion, finalizers: left } } } as const;
  await orGone(client.patch(stacks, refOf(view), { patch, fieldManager: fieldManagers.stackFinalizer, signal }));
  return done;
}

/** Whether an Update of the Stack exists that is more than a preview, or is not complete. */
async function hasChangedAnything({ client, signal }: Performer, view: StackView): Promise<boolean> {
  const { name, namespace } = refOf(view);
  const labelSelector = `${stackNameLabel}=${labelsOfStack(name)[stackNameLabel]}`;
  const { items } = await client.list(updates, { namespace, labelSelector, signal });
  const owned = items.filter((update) => isOwnedBy(update, asOwner(stacks, view.stack)));
  return owned.some((update) => update.spec?.type !== "preview" || !isComplete(update));
}

/** The Workspace is removed with the Stack, and would take a running Update with it. */
async function unfinishedUpdate(performer: Performer, view: StackView): Promise<Performed | undefined> {
  const unfinished = await unfinishedIn(performer, refOf(view));
  if (unfinished.some((update) => isOwnedBy(update, asOwner(stacks, view.stack)))) return stale;
  const running = view.workspace.kind === "foreign" ? undefined : unfinished.find(({ status }) => status?.podUid);
  if (!running) return undefined;
  const name = `Update ${running.metadata.name ?? ""}`;
  const message = `The Stack is not removed yet, because ${name} runs in its Workspace; to cancel it, delete ${name}.`;
  return {
    kind: "later",
    afterMs: busyMs,
    outcome: { kind: "processing", message, waitingFor: `the end of ${name}` },
  };
}

async function releaseUpdate(performer: Performer, view: StackView, update: UpdateView): Promise<void> {
  await release(performer, { namespace: refOf(view).namespace, name: update.name }, update);
}

/** Lets an Update go whose end is noted, or whose Stack is gone. */
export async function release(
  { client, signal }: Pick<Performer, "client" | "signal">,
  ref: ObjectRef,
  { resourceVersion, finalizers }: Pick<UpdateView, "resourceVersion" | "finalizers">,
): Promise<void> {
  const left = finalizers.filter((finalizer) => finalizer !== stackFinalizer);
  const patch = { type: "merge", body: { metadata: { resourceVersion, finalizers: left } } } as const;
  await orGone(client.patch(updates, ref, { patch, fieldManager: fieldManagers.operator, signal }));
}

/** Before the status, which says that there are new ones. That an update has ended is noted without them, too. */
async function keepOutputs(performer: Performer, view: StackView, updateName: string): Promise<Performed> {
  if (view.outputs.kind !== "read") return done;
  const secret = outputsSecret(view.stack, updateName, view.outputs);
  const { metadata, ...rest } = secret;
  const body = { ...rest, metadata: { ...metadata, name: metadata.name ?? "" } };
  const write = { resource: builtin.secrets, body };
  try {
    return performedBy(await applyOwned(targetOf(performer, view), write, { fieldManager: fieldManagers.operator }));
  } catch (error) {
    if (!isInvalid(error) && !isForbidden(error)) throw error;
    return { kind: "done", lost: `The outputs could not be written to ${body.metadata.name}: ${error.explanation}` };
  }
}

const targetOf = ({ client, signal }: Performer, { stack }: StackView): OwnedTarget => ({
  client,
  signal,
  owner: asOwner(stacks, stack),
});

function performedBy(write: OwnedWrite<unknown>): Performed {
  switch (write.kind) {
    case "written":
    case "absent":
      return done;
    case "changed":
      return stale;
    case "former":
    case "foreign":
      return { kind: "occupied", occupied: write };
    default:
      return assertNever(write);
  }
}

async function askPrerequisites(
  { client, signal }: Performer,
  view: StackView,
  { asks }: Extract<Step, { kind: "askPrerequisites" }>,
): Promise<Performed> {
  const { namespace } = refOf(view);
  for (const { name, uid, request } of asks) {
    // With its uid, one that is gone is not made anew.
    const metadata = { name, namespace, uid, annotations: { [reconcileRequestAnnotation]: request } };
    const { apiVersion, kind } = stacks;
    await client.apply(
      stacks,
      { apiVersion, kind, metadata },
      { fieldManager: fieldManagers.prerequisiteRequest, signal },
    );
  }
  return done;
}

async function applyWorkspace(
  performer: Performer,
  view: StackView,
  { workspace }: Extract<Step, { kind: "applyWorkspace" }>,
): Promise<Performed> {
  const { metadata, ...rest } = workspace;
  const body = { ...rest, metadata: { ...metadata, name: metadata.name ?? "" } };
  const write = { resource: workspaces, body };
  return performedBy(await applyOwned(targetOf(performer, view), write, { fieldManager: fieldManagers.operator }));
}

/** The one write that cannot be taken back: what it follows from is read once more, not from a store but for sure. */
async function createUpdate(
  performer: Performer,
  view: StackView,
  { update, workspace }: Extract<Step, { kind: "createUpdate" }>,
): Promise<Performed> {
  const { client, signal } = performer;
  const ref = refOf(view);
  const stack = await client.find(stacks, ref, { signal });
  if (!stack || !isSameStack(stack, view)) return stale;
  const place = { namespace: ref.namespace, name: workspace.metadata.name ?? "" };
  const present = await client.find(workspaces, place, { signal });
  if (!present || present.metadata.deletionTimestamp) return stale;
  if (present.metadata.uid !== workspace.metadata.uid) return stale;
  if (present.metadata.generation !== workspace.metadata.generation) return stale;
  try {
    await client.create(updates, update, { fieldManager: fieldManagers.operator, signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return await settleExistingUpdate(performer, view, update);
  }
  return done;
}

/**
 * By its name it is this very update, created before a crash or an answer that was lost; unless somebody else has created
 * one of that name. Its controller may be an earlier Workspace of the Stack, so the Stack must be among its owners.
 */
async function settleExistingUpdate(
  { client, signal }: Performer,
  { stack }: StackView,
  { metadata: { name = "", namespace = "" } }: Update,
): Promise<Performed> {
  const existing = await client.find(updates, { name, namespace }, { signal });
  const owner = asOwner(stacks, stack);
  const ownership = judgeOwnership(existing, owner);
  if (ownership.kind === "absent") return stale;
  if (ownership.kind === "ours" || (existing && isOwnedBy(existing, owner))) return done;
  return { kind: "occupied", occupied: { kind: "foreign", occupant: ownership.occupant } };
}

function isSameStack(stack: StackView["stack"], view: StackView): boolean {
  const seen = view.stack;
  return (
    stack.metadata.uid === seen.metadata.uid &&
    stack.metadata.generation === seen.metadata.generation &&
    Boolean(stack.metadata.deletionTimestamp) === Boolean(seen.metadata.deletionTimestamp) &&
    stack.status?.lastUpdate?.name === seen.status?.lastUpdate?.name &&
    stack.status?.lastUpdate?.lastResyncTime === seen.status?.lastUpdate?.lastResyncTime
  );
}

/** Its controller ends it. With a version, one that has begun since it was seen is let be. */
async function withdrawUpdate(
  { client, signal }: Performer,
  view: StackView,
  { name, uid, resourceVersion: seen }: Extract<Step, { kind: "withdrawUpdate" }>,
): Promise<Performed> {
  const ref = { namespace: refOf(view).namespace, name };
  const found = await client.find(metadataOf(updates), ref, { signal });
  if (!found || found.metadata.uid !== uid || !isOwnedBy(found, asOwner(stacks, view.stack))) return stale;
  const resourceVersion = seen ?? found.metadata.resourceVersion;
  await orGone(client.delete(updates, ref, { uid, ...(resourceVersion && { resourceVersion }), signal }));
  return done;
}

/** Somebody else's Update runs in the Workspace: nobody tells this Stack of its end. */
const busyMs = 10_000;

async function deleteWorkspace(
  performer: Performer,
  view: StackView,
  { uid }: Extract<Step, { kind: "deleteWorkspace" }>,
): Promise<Performed> {
  const { client, updates: known, signal } = performer;
  // A run would end with it: whether there is one is asked for, not taken from a store.
  const unfinished = await unfinishedIn({ client, updates: known, signal }, refOf(view));
  if (unfinished.some(({ status }) => status?.podUid !== undefined)) return { kind: "later", afterMs: busyMs };
  const place = { resource: workspaces, ref: refOf(view) };
  return performedBy(
    await deleteOwned({ ...targetOf(performer, view), uid }, place, { propagationPolicy: "Background" }),
  );
}

/** The whole status, as long as the Stack is as it was seen. */
export async function writeStatus(
  { client, signal }: Performer,
  view: StackView,
  status: StackStatus,
): Promise<Performed> {
  const body = [
    { op: "replace", path: "/metadata/resourceVersion", value: view.stack.metadata.resourceVersion },
    { op: "add", path: "/status", value: status },
  ];
  const patch = { type: "json", body } as const;
  try {
    const fieldManager = fieldManagers.stackStatus;
    await client.patch(stacks, refOf(view), { patch, subresource: "status", fieldManager, signal });
    return done;
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return stale;
    throw error;
  }
}

/** An object that is gone is as good as changed. */
async function orGone(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
