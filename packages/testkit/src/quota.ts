/** A quota that has no room for objects of one resource. No controller counts on the tests' API server, so this module does. */
import { resource, type Client, type KubeObject } from "@pko/kube";

import { waitFor } from "./wait-for.ts";

const quotas = resource<KubeObject & { spec?: object; status?: object }>({
  apiVersion: "v1",
  kind: "ResourceQuota",
  plural: "resourcequotas",
  namespaced: true,
});

interface QuotaOptions {
  /** A cluster admin's. */
  readonly client: Client;
  readonly namespace: string;
  /** As quotas name it: `count/workspaces.auto.pulumi.com`, `secrets`. */
  readonly counted: string;
  /** A dry run of a creation that the quota refuses: admission learns of a quota a moment after its creation. */
  readonly probe: () => Promise<unknown>;
}

/** Its message begins with "exceeded quota: none". Disposed of, there is room again. */
export async function fullQuota({ client, namespace, counted, probe }: QuotaOptions): Promise<AsyncDisposable> {
  const metadata = { name: "none", namespace };
  const hard = { [counted]: "0" };
  await client.create(quotas, { apiVersion: "v1", kind: "ResourceQuota", metadata, spec: { hard } });
  const body = { status: { hard, used: hard } };
  await client.patch(quotas, metadata, { patch: { type: "merge", body }, subresource: "status" });
  await waitFor(() => isRefused(probe), { what: "the quota to be enforced" });
  return { [Symbol.asyncDispose]: async () => await client.delete(quotas, metadata) };
}

async function isRefused(probe: QuotaOptions["probe"]): Promise<boolean> {
  try {
    await probe();
    return false;
  } catch (error) {
    return String(error).includes("exceeded quota");
  }
}
