/**
 * Stores objects directly in etcd, many in one transaction: a hundred thousand in seconds instead of ten minutes. Custom resources
 * are stored as the JSON that the API server would write.
 */
import type { KubeObject, Resource } from "@pko/kube";

/** etcd's limit for the operations of one transaction. */
const perTransaction = 128;
const writers = 4;

export interface StoredObject {
  readonly resource: Resource;
  readonly object: KubeObject;
}

export async function storeObjects(etcdUrl: string, objects: Iterable<StoredObject>): Promise<void> {
  const batches = batchesOf(objects);
  const worker = async (): Promise<void> => {
    for (let next = batches.next(); !next.done; next = batches.next()) await storeBatch(etcdUrl, next.value);
  };
  await Promise.all(Array.from({ length: writers }, worker));
}

async function storeBatch(etcdUrl: string, batch: readonly StoredObject[]): Promise<void> {
  const success = batch.map(({ resource, object }) => ({
    requestPut: { key: base64(keyOf(resource, object)), value: base64(JSON.stringify(object)) },
  }));
  const response = await fetch(`${etcdUrl}/v3/kv/txn`, { method: "POST", body: JSON.stringify({ success }) });
  if (!response.ok) throw new Error(`etcd responded ${response.status}: ${await response.text()}`);
  await response.arrayBuffer();
}

function* batchesOf(objects: Iterable<StoredObject>): Generator<StoredObject[], undefined> {
  let batch: StoredObject[] = [];
  for (const object of objects) {
    batch.push(object);
    if (batch.length < perTransaction) continue;
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

const base64 = (text: string): string => Buffer.from(text).toString("base64");
