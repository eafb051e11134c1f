/** A namespace for one test. The API server for tests has no namespace controller, so this module deletes the objects. */
import { fetchTransport, type Client, type Credentials } from "@pko/kube";

import type { ApiServer } from "./api-server.ts";
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
  const name = `test-${crypto.randomUUID().slice(0, 13)}`;
  const metadata = { name, ...(options.labels && { labels: options.labels }) };
  await request(server.credentials, "POST /api/v1/namespaces", {
    body: { apiVersion: "v1", kind: "Namespace", metadata },
  });
  const remove = async (): Promise<void> => removeNamespace(server.credentials, name);
  return { name, server, client: server.client, remove, [Symbol.asyncDispose]: remove };
}

async function removeNamespace(credentials: Credentials, name: string): Promise<void> {
  // From now on, nothing can be created in it.
  await request(credentials, `DELETE /api/v1/namespaces/${name}`);
  const collections = await namespacedCollections(credentials);
  await Promise.all(collections.map(async (collection) => emptyCollection(credentials, collection(name))));
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name }, spec: { finalizers: [] } };
  await request(credentials, `PUT /api/v1/namespaces/${name}/finalize`, { body: namespace });
}

/** Policies deny other users to delete protected objects. */
const namespaceController = "system:serviceaccount:kube-system:namespace-controller";

async function emptyCollection(credentials: Credentials, path: string): Promise<void> {
  const options = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds: 0, propagationPolicy: "Background" };
  await request(credentials, `DELETE ${path}`, { body: options, as: namespaceController });
  const left = await request(credentials, `GET ${path}`);
  const body = { metadata: { finalizers: null } };
  await Promise.all(
    left.items.map(({ metadata }) => request(credentials, `PATCH ${path}/${metadata.name ?? ""}`, { body })),
  );
}

/** A list of objects, or of API groups. */
interface Answer {
  readonly items: readonly {
    readonly metadata: { readonly name?: string };
    readonly versions?: readonly {
      readonly version: string;
      readonly resources: readonly { resource: string; scope: string; verbs: readonly string[] }[];
    }[];
  }[];
}

type PathIn = (namespace: string) => string;

/** Every namespaced kind, including custom resources. */
async function namespacedCollections(credentials: Credentials): Promise<PathIn[]> {
  const [core, groups] = await Promise.all([request(credentials, "GET /api"), request(credentials, "GET /apis")]);
  const paths = new Map<string, PathIn>();
  for (const group of [...core.items, ...groups.items]) {
    const groupName = group.metadata.name ?? "";
    for (const { version, resources } of group.versions ?? []) {
      const root = groupName === "" ? `/api/${version}` : `/apis/${groupName}/${version}`;
      for (const { resource, scope, verbs } of resources) {
        if (scope !== "Namespaced" || !verbs.includes("deletecollection")) continue;
        paths.set(`${groupName}/${resource}`, (namespace) => `${root}/namespaces/${namespace}/${resource}`);
      }
    }
  }
  return [...paths.values()];
}

const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

interface RequestOptions {
  readonly body?: object;
  /** Acts as this user. */
  readonly as?: string;
}

/** For calls that the client has no method for. Not found is not an error. */
async function request(credentials: Credentials, call: string, { body, as }: RequestOptions = {}): Promise<Answer> {
  const [method = "", path = ""] = call.split(" ");
  const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  const response = await fetchTransport({
    method,
    url: `${credentials.server}${path}`,
    headers: { accept, "content-type": type, ...(as !== undefined && { "impersonate-user": as }) },
    ...(body && { body: JSON.stringify(body) }),
    tls: (await credentials.access()).tls,
    signal: AbortSignal.timeout(30_000),
    freshConnection: false,
  });
  const text = await response.text();
  if (!response.ok && response.status !== 404) throw new Error(`${call}: ${response.status} ${text}`);
  return { items: [], ...(JSON.parse(text) as Partial<Answer>) };
}
