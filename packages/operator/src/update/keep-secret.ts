/** Creates the Secrets of what a run left. One that cannot be created is reported, and not retried: the Update has ended. */
import { fieldManagers, type Update } from "@pko/api";
import {
  ApiError,
  asOwner,
  builtin,
  isAlreadyExists,
  isConflict,
  isNotFound,
  judgeOwnership,
  type Client,
  type Known,
  type Occupant,
  type Owner,
} from "@pko/kube";
import type { Secret } from "kubernetes-types/core/v1";

import { updates } from "../kinds.ts";
import { foreignText } from "../ownership.ts";

interface Keeper {
  readonly client: Client;
  readonly signal: AbortSignal;
  readonly update: Update;
}

interface Keeping {
  readonly name: string;
  /** Unless it is kept: somebody else has the name; or a quota, a webhook, a role, a deleted namespace refuses it. */
  readonly problem?: string;
}

export async function keepSecret(keeper: Keeper, secret: Known<Secret>): Promise<Keeping> {
  const { name = "" } = secret.metadata;
  const problem = (why: string): string => `The Secret ${name} could not be created: ${why}`;
  try {
    const occupant = await create(keeper, secret);
    return occupant ? { name, problem: problem(takenText(keeper.update, occupant)) } : { name };
  } catch (error) {
    if (!(error instanceof ApiError) || !refusals.has(error.status)) throw error;
    return { name, problem: problem(error.explanation) };
  }
}

function takenText({ metadata }: Update, occupant: Occupant): string {
  const what = foreignText([occupant], { kind: updates.kind, name: metadata.name ?? "" });
  return `${what} Delete or rename it; the next update writes its own.`;
}

const refusals: ReadonlySet<number> = new Set([400, 403, 413, 422]);
const { operator: fieldManager } = fieldManagers;

/** Undefined when it is created, or was before. */
async function create(keeper: Keeper, secret: Known<Secret>): Promise<Occupant | undefined> {
  const { client, signal } = keeper;
  try {
    await client.create(builtin.secrets, secret, { fieldManager, signal });
    return undefined;
  } catch (error) {
    if (isAlreadyExists(error)) return await settleExisting(keeper, secret);
    throw error;
  }
}

/** Created before a crash; or left by an earlier Update of the same name; or somebody else's, which is not touched. */
async function settleExisting(keeper: Keeper, secret: Known<Secret>): Promise<Occupant | undefined> {
  const { client, signal, update } = keeper;
  const { name = "", namespace = "" } = secret.metadata;
  const existing = await client.find(builtin.secrets, { name, namespace }, { signal });
  const owner = asOwner(updates, update);
  const ownership = judgeOwnership(existing, owner);
  // The Go operator's Secret has the Update as its owner, but not as its controller.
  if (ownership.kind === "ours" || ownership.kind === "dependent") return undefined;
  if (ownership.kind === "foreign") return ownership.occupant;
  if (existing && !(await collect(keeper, existing, owner))) {
    return ownership.kind === "former" ? ownership.occupant : undefined;
  }
  await client.create(builtin.secrets, secret, { fieldManager, signal });
  return undefined;
}

/**
 * Deletes the Secret of an earlier Update of this name, as the garbage collector is about to: the run's result would have to
 * wait for that, and is lost with its pod. The earlier Update must be its only owner, and is proven to be deleted by the
 * API server's word that this Update has its name now. Whether it was the very Secret that was judged.
 */
async function collect({ client, signal }: Keeper, existing: Known<Secret>, owner: Owner): Promise<boolean> {
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
