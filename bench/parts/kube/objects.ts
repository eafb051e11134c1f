/** The objects of the benchmark, distributed over namespaces. */
import { builtin, type Client } from "@pko/kube";

import { inParallel } from "../../bed/wait.ts";

export type ConfigMap = NonNullable<typeof builtin.configMaps.object>;

export interface Population {
  readonly objects: number;
  readonly bytes: number;
  readonly namespaces: number;
}

export function namespaceName(index: number): string {
  return `bench-${index}`;
}

/** With what the API server adds (identity, times, managed fields) it has about the requested size. */
export function configMap(index: number, { bytes, namespaces }: Population): ConfigMap {
  const metadata = { namespace: namespaceName(index % namespaces), name: `object-${index}` };
  const data: Record<string, string> = {};
  for (let i = 0; i < keys; i++) data[`key-${i}`] = text(index * keys + i, Math.floor((bytes - added) / keys));
  return { apiVersion: "v1", kind: "ConfigMap", metadata, data };
}

const keys = 20;
const added = 940;

/** Different for each object, so that no text is shared in memory. */
function text(seed: number, length: number): string {
  return `${seed.toString(36)}-`.repeat(Math.ceil(length / 4)).slice(0, length);
}

export async function populate(client: Client, population: Population): Promise<void> {
  for (let i = 0; i < population.namespaces; i++) {
    const metadata = { name: namespaceName(i) };
    await client.create(builtin.namespaces, { apiVersion: "v1", kind: "Namespace", metadata });
  }
  await inParallel(indexes(population.objects), 16, async (index) => {
    await client.create(builtin.configMaps, configMap(index, population));
  });
}

interface Churn extends Population {
  readonly changes: number;
  readonly writers: number;
}

/** Changes objects, one at a time for each writer; each change has its time in an annotation. */
export async function churn(client: Client, { changes, writers, objects, namespaces }: Churn): Promise<void> {
  await inParallel(indexes(changes), writers, async (number) => {
    const index = number % objects;
    const ref = { namespace: namespaceName(index % namespaces), name: `object-${index}` };
    const body = { metadata: { annotations: { "bench/at": String(Date.now()) } } };
    await client.patch(builtin.configMaps, ref, { patch: { type: "merge", body } });
  });
}

const indexes = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
