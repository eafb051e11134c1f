/** The objects of the benchmark: as many and as large as asked for, spread over namespaces. */
import { builtin, type Client } from "@pko/kube";

export type ConfigMap = NonNullable<typeof builtin.configMaps.object>;

export interface Population {
  readonly objects: number;
  readonly bytes: number;
  readonly namespaces: number;
}

export function namespaceName(index: number): string {
  return `bench-${index}`;
}

/** With what the API server adds (identity, times, managed fields) it has about the size that was asked for. */
export function configMap(index: number, { bytes, namespaces }: Population): ConfigMap {
  const metadata = { namespace: namespaceName(index % namespaces), name: `object-${index}` };
  const data: Record<string, string> = {};
  for (let i = 0; i < keys; i++) data[`key-${i}`] = text(index * keys + i, Math.floor((bytes - added) / keys));
  return { apiVersion: "v1", kind: "ConfigMap", metadata, data };
}

const keys = 20;
const added = 940;

/** Differs from object to object, so that no text is held once for all. */
function text(seed: number, length: number): string {
  return `${seed.toString(36)}-`.repeat(Math.ceil(length / 4)).slice(0, length);
}

export async function populate(client: Client, population: Population): Promise<void> {
  for (let i = 0; i < population.namespaces; i++) {
    const metadata = { name: namespaceName(i) };
    await client.create(builtin.namespaces, { apiVersion: "v1", kind: "Namespace", metadata });
  }
  await inParallel({ count: population.objects, workers: 16 }, async (index) => {
    await client.create(builtin.configMaps, configMap(index, population));
  });
}

interface Churn extends Population {
  readonly changes: number;
  readonly writers: number;
}

/** Changes objects, one after the other for each writer; each change tells when it was decided. */
export async function churn(client: Client, { changes, writers, objects, namespaces }: Churn): Promise<void> {
  await inParallel({ count: changes, workers: writers }, async (number) => {
    const index = number % objects;
    const ref = { namespace: namespaceName(index % namespaces), name: `object-${index}` };
    const body = { metadata: { annotations: { "bench/at": String(Date.now()) } } };
    await client.patch(builtin.configMaps, ref, { patch: { type: "merge", body } });
  });
}

interface Crew {
  readonly count: number;
  readonly workers: number;
}

async function inParallel({ count, workers }: Crew, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: workers }, worker));
}
