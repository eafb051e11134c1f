/** Puts what a run left into a Secret. What cannot be kept is told, and not tried for ever: the Update has ended all the same. */
import { fieldManagers } from "@pko/api";
import { ApiError, builtin, isAlreadyExists, type Client, type Known } from "@pko/kube";
import type { Secret } from "kubernetes-types/core/v1";

import { updates } from "../kinds.ts";

interface Keeper {
  readonly client: Client;
  readonly signal: AbortSignal;
  /** Of the Update. */
  readonly uid: string;
}

interface Keeping {
  readonly name: string;
  /** "taken": the name is a user's. "refused": by a quota, a webhook, a role, a namespace that is being deleted. */
  readonly kind: "kept" | "taken" | "refused";
  /** Unless it is kept. */
  readonly problem?: string;
}

export async function keepSecret(keeper: Keeper, secret: Known<Secret>): Promise<Keeping> {
  const { name = "" } = secret.metadata;
  const problem = (why: string): string => `The Secret ${name} could not be made: ${why}`;
  try {
    const kind = await create(keeper, secret);
    return { name, kind, ...(kind === "taken" && { problem: problem("there is another Secret of that name") }) };
  } catch (error) {
    if (!(error instanceof ApiError) || !refusals.has(error.status)) throw error;
    return { name, kind: "refused", problem: problem(error.explanation) };
  }
}

const refusals: ReadonlySet<number> = new Set([400, 403, 413, 422]);
const { operator: fieldManager } = fieldManagers;

async function create(keeper: Keeper, secret: Known<Secret>): Promise<"kept" | "taken"> {
  const { client, signal } = keeper;
  try {
    await client.create(builtin.secrets, secret, { fieldManager, signal });
    return "kept";
  } catch (error) {
    if (isAlreadyExists(error)) return await settleExisting(keeper, secret);
    throw error;
  }
}

/** Made before a crash; or left by an Update of the same name that is gone; or a user's, which is not touched. */
async function settleExisting({ client, signal, uid }: Keeper, secret: Known<Secret>): Promise<"kept" | "taken"> {
  const { name = "", namespace = "" } = secret.metadata;
  const existing = await client.find(builtin.secrets, { name, namespace }, { signal });
  const owner = existing?.metadata.ownerReferences?.find(({ kind }) => kind === updates.kind);
  if (existing && owner?.uid === uid) return "kept";
  if (existing && !owner) return "taken";
  if (existing?.metadata.uid) {
    await client.delete(builtin.secrets, { name, namespace }, { uid: existing.metadata.uid, signal });
  }
  await client.create(builtin.secrets, secret, { fieldManager, signal });
  return "kept";
}
