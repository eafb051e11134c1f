/** Reads and writes etcd behind the API server: much cheaper than requests to it, and its watches see the changes. */
import type { KubeObject, Resource } from "@pko/kube";

const writers = 4;

export interface StoredObject {
  readonly resource: Resource;
  readonly object: KubeObject;
}

interface StoreOptions {
  /** etcd's limit is 128. Objects of one transaction share a resource version, which a running API server does not expect. */
  readonly perTransaction?: number;
}

/** Stores custom resources as the JSON that the API server would write. They need a UID, a generation and a creation time. */
export async function storeObjects(
  etcdUrl: string,
  objects: Iterable<StoredObject>,
  { perTransaction = 1 }: StoreOptions = {},
): Promise<void> {
  const batches = batchesOf(objects, perTransaction);
  const worker = async (): Promise<void> => {
    for (let next = batches.next(); !next.done; next = batches.next())
      await inTransaction(etcdUrl, next.value.map(put));
  };
  await Promise.all(Array.from({ length: writers }, worker));
}

const put = ({ resource, object }: StoredObject): object => ({
  requestPut: { key: base64(keyOf(resource, object)), value: base64(JSON.stringify(object)) },
});

function* batchesOf(objects: Iterable<StoredObject>, size: number): Generator<StoredObject[], undefined> {
  let batch: StoredObject[] = [];
  for (const object of objects) {
    batch.push(object);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
  return undefined;
}

/** As the API server names custom resources. */
function keyOf({ apiVersion, plural }: Resource, { metadata }: KubeObject): string {
  const [group = ""] = apiVersion.split("/");
  return `/registry/${group}/${plural}/${metadata.namespace ?? ""}/${metadata.name ?? ""}`;
}

/** Deletes a namespace and all objects in it: those of a kind are `/registry/pods/namespace/…`, or `/registry/pulumi.com/stacks/namespace/…`. */
export async function deleteNamespace(etcdUrl: string, namespace: string): Promise<void> {
  const all = { key: base64("/registry/"), range_end: base64("/registry0"), keys_only: true };
  const { kvs = [] } = (await request(etcdUrl, "range", all)) as { kvs?: readonly { readonly key: string }[] };
  const folders = new Set(kvs.flatMap(({ key }) => atob(key).match(`^/registry/.*/${namespace}/`)?.[0] ?? []));
  const namespaceItself = { requestDeleteRange: { key: base64(`/registry/namespaces/${namespace}`) } };
  // An open watch reports all deletions, although they share a resource version: namespace.test.ts. One that is opened meanwhile may miss some.
  await inTransaction(etcdUrl, [...Array.from(folders, deleteFolder), namespaceItself]);
}

/** "0" follows "/". */
const deleteFolder = (folder: string): object => ({
  requestDeleteRange: { key: base64(folder), range_end: base64(folder.replace(/\/$/, "0")) },
});

const inTransaction = (etcdUrl: string, success: readonly object[]): Promise<unknown> =>
  request(etcdUrl, "txn", { success });

async function request(etcdUrl: string, method: string, body: object): Promise<unknown> {
  const response = await fetch(`${etcdUrl}/v3/kv/${method}`, { method: "POST", body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`etcd responded ${response.status}: ${await response.text()}`);
  return await response.json();
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");
