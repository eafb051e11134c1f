/** A namespace for one test. The API server for tests has no namespace controller, so this module deletes the objects. */
import { fetchTransport, type Client, type Credentials } from "@pko/kube";

import type { ApiServer } from "./api-server.ts";
import { sharedApiServer } from "./shared-api-server.ts";
import { waitFor } from "./wait-for.ts";

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
  const remove = async (): Promise<void> => removeNamespace(server, name);
  return { name, server, client: server.client, remove, [Symbol.asyncDispose]: remove };
}

/** Deletes a namespace and all objects in it, ignoring finalizers. */
export async function removeNamespace(server: ApiServer, name: string): Promise<void> {
  const { credentials } = server;
  // From now on, nothing can be created in it.
  await request(credentials, `DELETE /api/v1/namespaces/${name}`);
  const collections = await collectionsIn(server, name);
  await Promise.all(collections.map(async (collection) => emptyCollection(credentials, collection(name))));
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name }, spec: { finalizers: [] } };
  await request(credentials, `PUT /api/v1/namespaces/${name}/finalize`, { body: namespace });
}

const known = new WeakMap<ApiServer, Promise<Collections>>();

/** The kinds that have objects in the namespace. To delete all of all fifty kinds took a tenth of the CPU of the tests. */
async function collectionsIn(server: ApiServer, namespace: string): Promise<PathIn[]> {
  const stored = await storedKinds(server, namespace);
  const find = async (): Promise<(PathIn | undefined)[]> => {
    const collections = await (known.get(server) ?? discover(server));
    return stored.map((kind) => collections.get(kind));
  };
  const isComplete = (paths: readonly (PathIn | undefined)[]): paths is PathIn[] => !paths.includes(undefined);
  const paths = await find();
  if (isComplete(paths)) return paths;
  // A CRD may have been added, and one whose objects are being deleted with it is no longer served.
  known.delete(server);
  return (await find()).filter((path) => path !== undefined);
}

async function discover(server: ApiServer): Promise<Collections> {
  const discovered = namespacedCollections(server.credentials);
  known.set(server, discovered);
  return await discovered;
}

/** The kinds whose folder in etcd has another name. */
const folders: Readonly<Record<string, string>> = {
  "services/specs": "services",
  "services/endpoints": "endpoints",
  ingress: "ingresses",
  controllers: "replicationcontrollers",
};

/** etcd has the objects of a namespace as `/registry/pods/namespace/name` or `/registry/pulumi.com/stacks/namespace/name`. */
async function storedKinds({ etcdUrl }: ApiServer, namespace: string): Promise<string[]> {
  const body = { key: btoa("/registry/"), range_end: btoa("/registry0"), keys_only: true };
  const response = await fetch(`${etcdUrl}/v3/kv/range`, { method: "POST", body: JSON.stringify(body) });
  const { kvs = [] } = (await response.json()) as { kvs?: readonly { readonly key: string }[] };
  const prefixes = kvs.flatMap(({ key }) => atob(key).match(`^/registry/(.*)/${namespace}/`)?.[1] ?? []);
  return Array.from(new Set(prefixes), (prefix) => folders[prefix] ?? prefix);
}

/** Policies deny other users to delete protected objects. */
const namespaceController = "system:serviceaccount:kube-system:namespace-controller";

async function emptyCollection(credentials: Credentials, path: string): Promise<void> {
  const options = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds: 0, propagationPolicy: "Background" };
  const remove = () => request(credentials, `DELETE ${path}`, { body: options, as: namespaceController });
  // Thousands of objects exceed the time of a request on a busy machine.
  const deleted = await waitFor(remove, { timeoutMs: 150_000, what: `${path} to be deleted` });
  // Of most kinds there are none.
  if (deleted.items.length === 0) return;
  const left = await request(credentials, `GET ${path}`);
  const body = { metadata: { finalizers: null } };
  // A thousand requests at the same time would exceed their timeout on a busy machine.
  const names = left.items.map(({ metadata }) => metadata.name ?? "");
  while (names.length > 0) {
    await Promise.all(names.splice(0, 50).map((name) => request(credentials, `PATCH ${path}/${name}`, { body })));
  }
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

/** By the plural name of a built-in kind, or by the group and plural name of another one. */
type Collections = ReadonlyMap<string, PathIn>;

/** Every namespaced kind, including custom resources. */
async function namespacedCollections(credentials: Credentials): Promise<Collections> {
  const [core, groups] = await Promise.all([request(credentials, "GET /api"), request(credentials, "GET /apis")]);
  const paths = new Map<string, PathIn>();
  for (const group of [...core.items, ...groups.items]) {
    const groupName = group.metadata.name ?? "";
    for (const { version, resources } of group.versions ?? []) {
      const root = groupName === "" ? `/api/${version}` : `/apis/${groupName}/${version}`;
      for (const { resource, scope, verbs } of resources) {
        if (scope !== "Namespaced" || !verbs.includes("deletecollection")) continue;
        const pathIn: PathIn = (namespace) => `${root}/namespaces/${namespace}/${resource}`;
        paths.set(`${groupName}/${resource}`, pathIn);
        if (isBuiltIn(groupName)) paths.set(resource, pathIn);
      }
    }
  }
  return paths;
}

const isBuiltIn = (group: string): boolean => !group.includes(".") || group.endsWith(".k8s.io");

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
