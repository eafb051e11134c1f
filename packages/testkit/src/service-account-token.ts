/** A token of a service account, as the TokenRequest API issues it. */
import { resource, type Client, type KubeObject, type ObjectRef } from "@pko/kube";

interface TokenRequest extends KubeObject {
  readonly spec: { readonly audiences: readonly string[]; readonly expirationSeconds?: number };
  readonly status?: { readonly token?: string };
}

export async function serviceAccountToken(
  client: Client,
  { namespace = "default", name }: ObjectRef,
  expirationSeconds = 3600,
): Promise<string> {
  // The subresource is addressed like a separate kind, because the client creates only whole objects.
  const tokenRequests = resource<TokenRequest>({
    apiVersion: "v1",
    kind: "TokenRequest",
    plural: `serviceaccounts/${encodeURIComponent(name)}/token`,
    namespaced: true,
  });
  const { status } = await client.create(tokenRequests, {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    metadata: { namespace },
    spec: { audiences: [], expirationSeconds },
  });
  if (status?.token === undefined) throw new Error(`no token for service account ${namespace}/${name}`);
  return status.token;
}
