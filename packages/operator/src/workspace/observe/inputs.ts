/** The Secrets and ConfigMaps that a Workspace refers to, and the Secret with its certificate: read by name. */
import { secretOutputsAnnotation, type Workspace } from "@pko/api";
import { builtin, type Client, type ApiObject } from "@pko/kube";
import type { Certificate } from "@pko/rpc/pki";
import type { ConfigMap, Secret } from "kubernetes-types/core/v1";

import { versionOf } from "../../inputs/reference-poller.ts";
import { certificateNameOf } from "../names.ts";
import { certificateIn } from "../pod/build-objects.ts";
import type { Reading } from "../pod/references.ts";

interface Reader {
  readonly client: Client;
  readonly namespace: string;
  readonly signal: AbortSignal;
}

export async function readObjects(
  { client, namespace, signal }: Reader,
  objects: readonly Pick<Reading, "kind" | "name">[],
): Promise<Reading[]> {
  return await Promise.all(
    objects.map(async ({ kind, name }): Promise<Reading> => {
      const ref = { namespace, name };
      if (kind === "Secret") {
        const secret = await client.find(builtin.secrets, ref, { signal });
        return { kind, name, version: versionOf(secret), ...(secret && { found: secretContent(secret) }) };
      }
      const configMap = await client.find(builtin.configMaps, ref, { signal });
      return { kind, name, version: versionOf(configMap), ...(configMap && { found: configMapContent(configMap) }) };
    }),
  );
}

type Content = NonNullable<Reading["found"]>;

function secretContent(secret: ApiObject<Secret>): Content {
  const data = Object.entries(secret.data ?? {}).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]);
  const secretKeys = secretKeysIn(secret);
  return {
    uid: secret.metadata.uid ?? "",
    data: Object.fromEntries(data) as Record<string, string>,
    ...(secretKeys && { secretKeys }),
  };
}

function secretKeysIn({ metadata }: ApiObject<Secret>): string[] | undefined {
  try {
    const keys: unknown = JSON.parse(metadata.annotations?.[secretOutputsAnnotation] ?? "");
    return Array.isArray(keys) ? keys.map(String) : undefined;
  } catch {
    return undefined;
  }
}

function configMapContent(configMap: ApiObject<ConfigMap>): Content {
  return { uid: configMap.metadata.uid ?? "", data: { ...configMap.binaryData, ...configMap.data } };
}

/** Undefined if there is none, or its Secret is incomplete. */
export async function readCertificate(
  { client, signal }: Omit<Reader, "namespace">,
  { metadata }: Workspace,
): Promise<Certificate | undefined> {
  const { name = "", namespace = "" } = metadata;
  const secret = await client.find(builtin.secrets, { namespace, name: certificateNameOf(name) }, { signal });
  return secret && certificateIn(secret);
}
