/** Creates objects that an Update owns and that are never changed: one that exists has the same content. */
import { fieldManagers, type Update } from "@pko/api";
import {
  asOwner,
  classifyOwnership,
  isAlreadyExists,
  isConflict,
  isNotFound,
  type Client,
  type KubeObject,
  type Occupant,
  type Owner,
  type Resource,
} from "@pko/kube";

import { updates } from "../../kinds.ts";
import { foreignText } from "../../shared/objects/ownership.ts";

export interface OwnedWriter {
  readonly client: Client;
  readonly signal: AbortSignal;
  readonly update: Update;
}

const { operator: fieldManager } = fieldManagers;

/** Whose object has the name, in a sentence; undefined if the object was created now or before. */
export async function createOwned<T extends KubeObject>(
  writer: OwnedWriter,
  resource: Resource<T>,
  object: T,
): Promise<string | undefined> {
  const { client, signal, update } = writer;
  try {
    await client.create(resource, object, { fieldManager, signal });
    return undefined;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const occupant = await resolveExisting(writer, resource, object);
    return occupant && foreignText([occupant], { kind: updates.kind, name: update.metadata.name ?? "" });
  }
}

/** Created before a crash, or left by an earlier Update of the same name, or owned by another, which is not changed. */
async function resolveExisting<T extends KubeObject>(
  writer: OwnedWriter,
  resource: Resource<T>,
  object: T,
): Promise<Occupant | undefined> {
  const { client, signal, update } = writer;
  const { name = "", namespace = "" } = object.metadata;
  const existing = await client.find(resource, { name, namespace }, { signal });
  const owner = asOwner(updates, update);
  const ownership = classifyOwnership(existing, owner);
  // The Go operator's Secret has the Update as its owner, but not as its controller.
  if (ownership.kind === "ours" || ownership.kind === "dependent") return undefined;
  if (ownership.kind === "foreign") return ownership.occupant;
  if (existing && !(await deleteOrphan(writer, resource, { existing, owner }))) {
    return ownership.kind === "former" ? ownership.occupant : undefined;
  }
  await client.create(resource, object, { fieldManager, signal });
  return undefined;
}

/**
 * Deletes the object of an earlier Update of this name, as the garbage collector soon would: waiting for that would risk the
 * result, which is lost with its pod. The earlier Update must be the only owner, and the API server must confirm that this
 * Update has the name now. Returns whether it was deleted.
 */
async function deleteOrphan<T extends KubeObject>(
  { client, signal }: OwnedWriter,
  resource: Resource<T>,
  { existing, owner }: { readonly existing: T; readonly owner: Owner },
): Promise<boolean> {
  const { name = "", namespace = "", uid, resourceVersion, ownerReferences = [] } = existing.metadata;
  if (ownerReferences.length !== 1 || uid === undefined || resourceVersion === undefined) return false;
  const present = await client.find(updates, { namespace, name: owner.name }, { signal });
  if (present?.metadata.uid !== owner.uid) return false;
  try {
    await client.delete(resource, { name, namespace }, { uid, resourceVersion, signal });
    return true;
  } catch (error) {
    if (isNotFound(error)) return true;
    if (isConflict(error)) return false;
    throw error;
  }
}
