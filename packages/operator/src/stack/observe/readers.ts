/** Reads Secrets and ConfigMaps by name. Each object is read once per reconcile: steps continue with what was observed. */
import { builtin, isForbidden, isNotFound, type Client, type ApiObject, type KubeObject } from "@pko/kube";
import type { Secret } from "kubernetes-types/core/v1";

import { versionOf } from "../../inputs/reference-poller.ts";
import { secretId, type ReadObjects } from "../view.ts";

export interface ReadObject {
  readonly uid: string;
  readonly version: string;
  /** The texts by key. */
  readonly data: Readonly<Record<string, string>>;
}

/** Undefined if the object does not exist or may not be read. */
type ReadByName = (name: string) => Promise<ReadObject | undefined>;

export interface Readers {
  readonly secret: ReadByName;
  readonly configMap: ReadByName;
  readonly secretObject: (name: string) => Promise<ApiObject<Secret> | undefined>;
  /** Everything that these readers have read, and what was known before. */
  readonly objects: ReadObjects;
}

interface ReadContext {
  readonly client: Client;
  readonly signal: AbortSignal;
}

/** `known` is not read again. */
export function readersIn(namespace: string, { client, signal }: ReadContext, known: ReadObjects = new Map()): Readers {
  const objects = new Map(known);
  const reads = new Map<string, Promise<void>>();
  const once = async <T extends KubeObject>(id: string, read: () => Promise<T | undefined>): Promise<T | undefined> => {
    const add = async (): Promise<void> => void objects.set(id, await orMissing(read));
    const started = reads.get(id) ?? (objects.has(id) ? undefined : add());
    if (started) reads.set(id, started);
    await started;
    return objects.get(id) as T | undefined;
  };
  const secretObject = (name: string): Promise<ApiObject<Secret> | undefined> =>
    once(secretId(name), () => client.find(builtin.secrets, { namespace, name }, { signal }));
  return {
    objects,
    secretObject,
    async secret(name) {
      const secret = await secretObject(name);
      return secret && readObject(secret, decoded(secret.data ?? {}));
    },
    async configMap(name) {
      const read = () => client.find(builtin.configMaps, { namespace, name }, { signal });
      const configMap = await once(`configMap/${name}`, read);
      return configMap && readObject(configMap, { ...decoded(configMap.binaryData ?? {}), ...configMap.data });
    },
  };
}

const readObject = (object: Pick<KubeObject, "metadata">, data: ReadObject["data"]): ReadObject => ({
  uid: object.metadata.uid ?? "",
  version: versionOf(object),
  data,
});

async function orMissing<T>(read: () => Promise<T | undefined>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (isForbidden(error) || isNotFound(error)) return undefined;
    throw error;
  }
}

function decoded(data: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]));
}
