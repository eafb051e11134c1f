/** Creates the Secrets of a run's result. A failure is reported and not retried, because the Update has ended. */
import { fieldManagers, type Update } from "@pko/api";
import {
  ApiError,
  asOwner,
  builtin,
  isAlreadyExists,
  isConflict,
  isNotFound,
  classifyOwnership,
  type Client,
  type ApiObject,
  type Occupant,
  type Owner,
} from "@pko/kube";
import type { Secret } from "kubernetes-types/core/v1";

import { updates } from "../../kinds.ts";
import { foreignText } from "../../shared/objects/ownership.ts";
import * as messages from "../messages.ts";

interface SecretWriter {
  readonly client: Client;
  readonly signal: AbortSignal;
  readonly update: Update;
}

export interface CreatedSecret {
  readonly name: string;
  /** Present if the Secret was not created: its name is taken, or a quota, webhook, role or deleted namespace prevents it. */
  readonly failure?: string;
}

export async function createSecret(writer: SecretWriter, secret: ApiObject<Secret>): Promise<CreatedSecret> {
  const { name = "" } = secret.metadata;
  try {
    const occupant = await create(writer, secret);
    if (!occupant) return { name };
    const { kind } = updates;
    const what = foreignText([occupant], { kind, name: writer.update.metadata.name ?? "" });
    return { name, failure: messages.secretNotCreated(name, messages.secretNameTaken(what)) };
  } catch (error) {
    if (!(error instanceof ApiError) || !rejections.has(error.status)) throw error;
    return { name, failure: messages.secretNotCreated(name, error.explanation) };
  }
}

const rejections: ReadonlySet<number> = new Set([400, 403, 413, 422]);
const { operator: fieldManager } = fieldManagers;

/** The object that has the name, or undefined if the Secret was created now or before. */
async function create(writer: SecretWriter, secret: ApiObject<Secret>): Promise<Occupant | undefined> {
  const { client, signal } = writer;
  try {
    await client.create(builtin.secrets, secret, { fieldManager, signal });
    return undefined;
  } catch (error) {
    if (isAlreadyExists(error)) return await resolveExisting(writer, secret);
    throw error;
  }
}

/** Created before a crash, or left by an earlier Update of the same name, or owned by another, which is not changed. */
async function resolveExisting(writer: SecretWriter, secret: ApiObject<Secret>): Promise<Occupant | undefined> {
  const { client, signal, update } = writer;
  const { name = "", namespace = "" } = secret.metadata;
  const existing = await client.find(builtin.secrets, { name, namespace }, { signal });
  const owner = asOwner(updates, update);
  const ownership = classifyOwnership(existing, owner);
  // The Go operator's Secret has the Update as its owner, but not as its controller.
  if (ownership.kind === "ours" || ownership.kind === "dependent") return undefined;
  if (ownership.kind === "foreign") return ownership.occupant;
  if (existing && !(await deleteOrphan(writer, existing, owner))) {
    return ownership.kind === "former" ? ownership.occupant : undefined;
  }
  await client.create(builtin.secrets, secret, { fieldManager, signal });
  return undefined;
}

/**
 * Deletes the Secret of an earlier Update of this name, as the garbage collector soon would: waiting for that would risk the
 * result, which is lost with its pod. The earlier Update must be the only owner, and the API server must confirm that this
 * Update has the name now. Returns whether it was deleted.
 */
async function deleteOrphan(
  { client, signal }: SecretWriter,
  existing: ApiObject<Secret>,
  owner: Owner,
): Promise<boolean> {
  const { name = "", namespace = "", uid, resourceVersion, ownerReferences = [] } = existing.metadata;
  if (ownerReferences.length !== 1 || uid === undefined || resourceVersion === undefined) return false;
  const present = await client.find(updates, { namespace, name: owner.name }, { signal });
  if (present?.metadata.uid !== owner.uid) return false;
  try {
    await client.delete(builtin.secrets, { name, namespace }, { uid, resourceVersion, signal });
    return true;
  } catch (error) {
    if (isNotFound(error)) return true;
    if (isConflict(error)) return false;
    throw error;
  }
}
