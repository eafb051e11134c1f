/**
 * Uses the outputs Secret of an earlier Update for one with the same outputs, as most have whose Stack is updated periodically. The
 * Update becomes another owner: the garbage collector deletes the Secret with the last of its owners.
 */
import { isDeepStrictEqual } from "node:util";

import { fieldManagers, secretOutputsAnnotation } from "@pko/api";
import { builtin, isConflict, isNotFound, isOwnedBy, type ApiObject } from "@pko/kube";
import type { Secret } from "kubernetes-types/core/v1";

import { updates } from "../../kinds.ts";
import { ownerReference } from "../../shared/objects/owner-reference.ts";
import { outputNamesAnnotation } from "../../shared/outputs/stored-outputs.ts";
import type { FormerOutputs } from "../view.ts";
import type { OwnedWriter } from "./create-owned.ts";
import { isRejection } from "./create-secret.ts";

/** References of deleted Updates are removed by the garbage collector, which may be late or missing. */
const maxOwners = 50;

/** The garbage collector may change the references of the Secret at the same time. */
const maxAttempts = 3;

/** The name of the Secret, or undefined if the Update needs one of its own. */
export async function reuseOutputs(
  writer: OwnedWriter,
  wanted: ApiObject<Secret>,
  former: FormerOutputs,
): Promise<string | undefined> {
  if (!(await becomeOwner(writer, wanted, former))) return undefined;
  // If the earlier Update still exists after the patch, the garbage collector has not yet decided about the Secret, and will see the
  // new owner.
  return (await isPresent(writer, former)) ? former.secretName : undefined;
}

async function becomeOwner(writer: OwnedWriter, wanted: ApiObject<Secret>, former: FormerOutputs): Promise<boolean> {
  const { client, signal, update } = writer;
  const ref = { namespace: update.metadata.namespace ?? "", name: former.secretName };
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    const found = await client.find(builtin.secrets, ref, { signal });
    if (!found || !isReusable(found, wanted, former)) return false;
    if (isOwnedBy(found, { uid: update.metadata.uid ?? "" })) return true;
    const outcome = await addOwner(writer, found);
    if (outcome !== "conflict") return outcome === "added";
  }
  return false;
}

/** Only a Secret that the earlier Update owns, and whose content cannot change. */
function isReusable(found: ApiObject<Secret>, wanted: ApiObject<Secret>, { updateUid }: FormerOutputs): boolean {
  const { deletionTimestamp, ownerReferences = [] } = found.metadata;
  return (
    found.immutable === true &&
    deletionTimestamp === undefined &&
    ownerReferences.length < maxOwners &&
    isOwnedBy(found, { uid: updateUid }) &&
    isDeepStrictEqual(contentOf(found), contentOf(wanted))
  );
}

function contentOf({ metadata, data = {} }: ApiObject<Secret>): object {
  const annotations = [secretOutputsAnnotation, outputNamesAnnotation].map((name) => metadata.annotations?.[name]);
  return { annotations, data: { ...data } };
}

/** A conflict also results if the response to the patch was lost, and the client has repeated it. */
async function addOwner(writer: OwnedWriter, found: ApiObject<Secret>): Promise<"added" | "conflict" | "refused"> {
  const { client, signal, update } = writer;
  const { name = "", namespace = "", uid, resourceVersion, ownerReferences = [] } = found.metadata;
  const owner = ownerReference(
    { ...updates, metadata: update.metadata },
    { controller: false, blockOwnerDeletion: false },
  );
  const body = { metadata: { uid, resourceVersion, ownerReferences: [...ownerReferences, owner] } };
  try {
    const patch = { type: "merge", body } as const;
    await client.patch(builtin.secrets, { name, namespace }, { patch, fieldManager: fieldManagers.operator, signal });
    return "added";
  } catch (error) {
    if (isConflict(error)) return "conflict";
    if (isNotFound(error) || isRejection(error)) return "refused";
    throw error;
  }
}

async function isPresent({ client, signal, update }: OwnedWriter, former: FormerOutputs): Promise<boolean> {
  const ref = { namespace: update.metadata.namespace ?? "", name: former.updateName };
  const found = await client.find(updates, ref, { signal });
  return found?.metadata.uid === former.updateUid && found.metadata.deletionTimestamp === undefined;
}
