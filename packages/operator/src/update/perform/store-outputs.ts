/** Stores the outputs of a run: in the Secret of an earlier Update with the same outputs, or in one of the Update's own. */
import { outputsSecretNameOf } from "@pko/api";
import { builtin, groupOf, metadataOf, type ApiObject } from "@pko/kube";
import type { Secret } from "kubernetes-types/core/v1";

import { updates } from "../../kinds.ts";
import type { FormerOutputs } from "../view.ts";
import type { OwnedWriter } from "./create-owned.ts";
import { createSecret, type CreatedSecret } from "./create-secret.ts";
import { reuseOutputs } from "./reuse-outputs.ts";

export async function storeOutputs(
  writer: OwnedWriter,
  secret: ApiObject<Secret>,
  former: FormerOutputs | undefined,
): Promise<CreatedSecret> {
  const reused = former && (await reuseOutputs(writer, secret, former));
  if (reused !== undefined) return { name: reused };
  const created = await createSecret(writer, secret);
  if (created.failure === undefined || !(await isOfUpdates(writer, created.name))) return created;
  const { name = "", uid = "" } = writer.update.metadata;
  const otherName = outputsSecretNameOf(`${name}-${uid.slice(0, 8)}`);
  return await createSecret(writer, { ...secret, metadata: { ...secret.metadata, name: otherName } });
}

/** An earlier Update of the same name created the Secret, and others still use it. */
async function isOfUpdates({ client, signal, update }: OwnedWriter, name: string): Promise<boolean> {
  const ref = { namespace: update.metadata.namespace ?? "", name };
  const found = await client.find(metadataOf(builtin.secrets), ref, { signal });
  const owners = found?.metadata.ownerReferences ?? [];
  const isUpdate = ({ kind, apiVersion }: (typeof owners)[number]): boolean =>
    kind === updates.kind && groupOf(apiVersion) === groupOf(updates.apiVersion);
  return owners.length > 0 && owners.every(isUpdate);
}
