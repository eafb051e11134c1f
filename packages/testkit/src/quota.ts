/** An exhausted quota. The API server for tests has no quota controller, so this module sets the quota's status. */
import { resource, type Client, type KubeObject } from "@pko/kube";

import { waitFor } from "./wait-for.ts";

const quotas = resource<KubeObject & { spec?: object; status?: object }>({
  apiVersion: "v1",
  kind: "ResourceQuota",
  plural: "resourcequotas",
  namespaced: true,
});

interface QuotaOptions {
  /** Authenticated as a cluster admin. */
  readonly client: Client;
  readonly namespace: string;
  /** The resource name in the quota: `count/workspaces.auto.pulumi.com`, `secrets`. */
  readonly counted: string;
  /** A dry run of a creation that the quota rejects: admission needs a moment to see a new quota. */
  readonly probe: () => Promise<unknown>;
}

/** Rejections have a message with "exceeded quota: none". Disposing deletes the quota. */
export async function fullQuota({ client, namespace, counted, probe }: QuotaOptions): Promise<AsyncDisposable> {
  const metadata = { name: "none", namespace };
  const hard = { [counted]: "0" };
  await client.create(quotas, { apiVersion: "v1", kind: "ResourceQuota", metadata, spec: { hard } });
  const body = { status: { hard, used: hard } };
  await client.patch(quotas, metadata, { patch: { type: "merge", body }, subresource: "status" });
  await waitFor(() => isRejected(probe), { what: "the quota to be enforced" });
  return { [Symbol.asyncDispose]: async () => await client.delete(quotas, metadata) };
}

async function isRejected(probe: QuotaOptions["probe"]): Promise<boolean> {
  try {
    await probe();
    return false;
  } catch (error) {
    return String(error).includes("exceeded quota");
  }
}
