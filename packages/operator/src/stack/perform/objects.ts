/** Steps that write the Workspace, the Updates and the outputs of a Stack, and request updates of other Stacks. */
import { fieldManagers, reconcileRequestAnnotation, type Update, type Workspace } from "@pko/api";
import {
  applyOwned,
  asOwner,
  builtin,
  classifyOwnership,
  deleteOwned,
  isAlreadyExists,
  isForbidden,
  isInvalid,
  isOwnedBy,
  metadataOf,
  stepDone,
  stepStale,
  type OwnedTarget,
  type OwnedWrite,
  ApiError,
  isTransient,
} from "@pko/kube";

import { stacks, updates, workspaces } from "../../kinds.ts";
import { stackExists } from "../../shared/objects/stack-exists.ts";
import { unfinishedIn } from "../../shared/updates.ts";
import { outputsSecret } from "../desired/outputs-secret.ts";
import type { Step } from "../steps.ts";
import { secretId, type StackView } from "../view.ts";
import { ignoreNotFound, isSameStack, replan, stackRef, type PerformedStep, type Performer } from "./performer.ts";

export async function applyWorkspace(
  performer: Performer,
  view: StackView,
  { workspace }: Extract<Step, { kind: "applyWorkspace" }>,
): Promise<PerformedStep> {
  if (view.workspace.kind === "absent" && !(await stackExists(performer, view.stack))) return stepStale;
  const { metadata, ...rest } = workspace;
  const body = { ...rest, metadata: { ...metadata, name: metadata.name ?? "" } };
  const write = { resource: workspaces, body };
  const options = { fieldManager: fieldManagers.operator, ...workspaceFound(view) };
  return performedBy(await applyOwned(ownedTarget(performer, view), write, options), "occupied");
}

function workspaceFound({ workspace }: StackView): { readonly found?: { readonly object?: Workspace } } {
  if (workspace.kind === "absent") return { found: {} };
  return workspace.kind === "present" ? { found: { object: workspace.object } } : {};
}

/** An Update that runs in it would be interrupted, so unfinished ones are read from the API server first. */
export async function deleteWorkspace(
  performer: Performer,
  view: StackView,
  { uid }: Extract<Step, { kind: "deleteWorkspace" }>,
): Promise<PerformedStep> {
  const unfinished = await unfinishedIn(performer, stackRef(view));
  const running = unfinished.find(({ status }) => status?.podUid !== undefined);
  if (running) return replan({ otherUpdate: running.metadata.name ?? "" });
  const target = { ...ownedTarget(performer, view), uid };
  const destination = { resource: workspaces, ref: stackRef(view) };
  return performedBy(await deleteOwned(target, destination, { propagationPolicy: "Background" }), "occupied");
}

/** A started update cannot be undone, so the API server confirms first what the stores show. */
export async function createUpdate(
  performer: Performer,
  view: StackView,
  { update, workspace }: Extract<Step, { kind: "createUpdate" }>,
): Promise<PerformedStep> {
  const { client, signal } = performer;
  const ref = stackRef(view);
  const stack = await client.find(stacks, ref, { signal });
  if (!stack || !isSameStack(stack, view)) return stepStale;
  const workspaceRef = { namespace: ref.namespace, name: workspace.metadata.name ?? "" };
  const present = await client.find(workspaces, workspaceRef, { signal });
  if (!present || present.metadata.deletionTimestamp) return stepStale;
  if (present.metadata.uid !== workspace.metadata.uid) return stepStale;
  if (present.metadata.generation !== workspace.metadata.generation) return stepStale;
  try {
    await client.create(updates, update, { fieldManager: fieldManagers.operator, signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return await checkExistingUpdate(performer, view, update);
  }
  return stepDone;
}

/**
 * The name belongs to this trigger alone: the Update was created before a crash, or the response was lost; unless someone
 * else created an Update of that name. Its controller may be an earlier Workspace, so the Stack must be among its owners.
 */
async function checkExistingUpdate(
  { client, signal }: Performer,
  { stack }: StackView,
  { metadata: { name = "", namespace = "" } }: Update,
): Promise<PerformedStep> {
  const existing = await client.find(updates, { name, namespace }, { signal });
  const owner = asOwner(stacks, stack);
  const ownership = classifyOwnership(existing, owner);
  if (ownership.kind === "absent") return stepStale;
  if (ownership.kind === "ours" || (existing && isOwnedBy(existing, owner))) return stepDone;
  return replan({ occupied: { kind: "foreign", occupant: ownership.occupant } });
}

/** The Update controller cancels it. With a version, an Update that has started in the meantime is left alone. */
export async function withdrawUpdate(
  { client, signal }: Performer,
  view: StackView,
  { name, uid, resourceVersion: observed }: Extract<Step, { kind: "withdrawUpdate" }>,
): Promise<PerformedStep> {
  const ref = { namespace: stackRef(view).namespace, name };
  const found = await client.find(metadataOf(updates), ref, { signal });
  if (!found || found.metadata.uid !== uid || !isOwnedBy(found, asOwner(stacks, view.stack))) return stepStale;
  const resourceVersion = observed ?? found.metadata.resourceVersion;
  await ignoreNotFound(client.delete(updates, ref, { uid, ...(resourceVersion && { resourceVersion }), signal }));
  return stepDone;
}

/** The API server confirms the status of the Stack first, which may need an Update that the store's status does not name. */
export async function deleteUpdates(
  { client, signal }: Performer,
  view: StackView,
  { updates: excess }: Extract<Step, { kind: "deleteUpdates" }>,
): Promise<PerformedStep> {
  const { name, namespace } = stackRef(view);
  const stack = await client.find(stacks, { name, namespace }, { signal });
  if (!stack || !isSameStack(stack, view)) return stepStale;
  for (const { name, uid, resourceVersion } of excess) {
    const version = { uid, resourceVersion, propagationPolicy: "Background" } as const;
    await ignoreRejection(client.delete(updates, { namespace, name }, { ...version, signal }));
  }
  return replan({ isHistoryTrimmed: true });
}

/** It was deleted or has changed, or a webhook denies its deletion: the Stack does not wait for it, and a later pass tries again. */
async function ignoreRejection(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (!(error instanceof ApiError) || isTransient(error)) throw error;
  }
}

export async function requestPrerequisites(
  { client, signal }: Performer,
  view: StackView,
  { requests }: Extract<Step, { kind: "requestPrerequisites" }>,
): Promise<PerformedStep> {
  const { namespace } = stackRef(view);
  const { apiVersion, kind } = stacks;
  for (const { name, uid, request } of requests) {
    // With the UID, the request cannot create a Stack that was deleted.
    const metadata = { name, namespace, uid, annotations: { [reconcileRequestAnnotation]: request } };
    const body = { apiVersion, kind, metadata };
    await client.apply(stacks, body, { fieldManager: fieldManagers.prerequisiteRequest, signal });
  }
  return stepDone;
}

/** Written before the status, which announces them. The result is recorded even if they cannot be written. */
export async function writeOutputs(performer: Performer, view: StackView, updateName: string): Promise<PerformedStep> {
  if (view.outputs.kind !== "read" || view.occupiedOutputs) return stepDone;
  const { metadata, ...rest } = outputsSecret(view.stack, updateName, view.outputs);
  const name = metadata.name ?? "";
  const write = { resource: builtin.secrets, body: { ...rest, metadata: { ...metadata, name } } };
  const found = { object: view.readObjects.get(secretId(name)) };
  try {
    const options = { fieldManager: fieldManagers.operator, ...(view.readObjects.has(secretId(name)) && { found }) };
    return performedBy(await applyOwned(ownedTarget(performer, view), write, options), "occupiedOutputs");
  } catch (error) {
    if (!isInvalid(error) && !isForbidden(error)) throw error;
    return { kind: "done", facts: { rejectedOutputs: { secretName: name, explanation: error.explanation } } };
  }
}

const ownedTarget = ({ client, signal }: Performer, { stack }: StackView): OwnedTarget => ({
  client,
  signal,
  owner: asOwner(stacks, stack),
});

/** `fact`: where the rules find the object that has taken the name. */
function performedBy(write: OwnedWrite<unknown>, fact: "occupied" | "occupiedOutputs"): PerformedStep {
  switch (write.kind) {
    case "written":
    case "absent":
      return stepDone;
    case "changed":
      return stepStale;
    case "former":
    case "foreign":
      return replan({ [fact]: write });
  }
}
