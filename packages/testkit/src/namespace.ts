/** A namespace for one test. The API server for tests has no namespace controller, so this module deletes the objects. */
import { builtin, isNotFound, type Client } from "@pko/kube";

import type { ApiServer } from "./api-server.ts";
import { deleteNamespace } from "./etcd.ts";
import { sharedApiServer } from "./shared-api-server.ts";

export interface TestNamespace extends AsyncDisposable {
  readonly name: string;
  readonly server: ApiServer;
  /** Authenticated as a cluster admin. */
  readonly client: Client;
  /** Deletes the namespace and all objects in it, ignoring finalizers. `await using` does so at the end of the test. */
  remove(): Promise<void>;
}

interface NamespaceOptions {
  /** The shared API server if absent. */
  readonly server?: ApiServer;
  readonly labels?: Readonly<Record<string, string>>;
}

export async function testNamespace(options: NamespaceOptions = {}): Promise<TestNamespace> {
  const server = options.server ?? (await sharedApiServer());
  const { client } = server;
  const name = `test-${crypto.randomUUID().slice(0, 13)}`;
  const metadata = { name, ...(options.labels && { labels: options.labels }) };
  await client.create(builtin.namespaces, { apiVersion: "v1", kind: "Namespace", metadata });
  const remove = async (): Promise<void> => removeNamespace(server, name);
  return { name, server, client, remove, [Symbol.asyncDispose]: remove };
}

/** Deletes a namespace and all objects in it, ignoring finalizers and policies. */
export async function removeNamespace({ client, etcdUrl }: ApiServer, name: string): Promise<void> {
  // From now on, nothing can be created in it.
  await client.delete(builtin.namespaces, { name }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
  // By requests, this took a tenth of the CPU of the tests.
  await deleteNamespace(etcdUrl, name);
}
