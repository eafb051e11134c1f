/** Every right that the API server knows, and the call that needs it. */
import { fetchTransport, type Credentials } from "@pko/kube";

export interface Right {
  /** Empty for the core group. */
  readonly group: string;
  /** With its subresource: `pods/exec`. */
  readonly resource: string;
  readonly verb: string;
  /** Method and path: in the namespace, where the resource has one. */
  readonly callIn: (namespace: string) => string;
}

interface Discovered {
  readonly metadata: { readonly name?: string };
  readonly versions: readonly {
    readonly version: string;
    readonly resources?: readonly {
      readonly resource: string;
      readonly scope: "Namespaced" | "Cluster";
      readonly verbs: readonly string[];
      readonly subresources?: readonly { readonly subresource: string; readonly verbs: readonly string[] }[];
    }[];
  }[];
}

const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/** Of all resources, in the version that the API server prefers. */
export async function servedRights(admin: Credentials): Promise<Right[]> {
  const groups = await Promise.all(["/api", "/apis"].map((path) => discovered(admin, path)));
  return groups.flat().flatMap(rightsOf);
}

async function discovered(admin: Credentials, path: string): Promise<readonly Discovered[]> {
  const { tls } = await admin.access();
  const response = await fetchTransport({
    method: "GET",
    url: `${admin.server}${path}`,
    headers: { accept },
    tls,
    signal: AbortSignal.timeout(30_000),
    freshConnection: false,
  });
  return ((await response.json()) as { readonly items: readonly Discovered[] }).items;
}

function rightsOf({ metadata: { name: group = "" }, versions: [preferred] }: Discovered): Right[] {
  if (!preferred) return [];
  const root = group === "" ? `/api/${preferred.version}` : `/apis/${group}/${preferred.version}`;
  const rights: Right[] = [];
  for (const { resource, scope, verbs, subresources = [] } of preferred.resources ?? []) {
    const collection = (namespace: string): string =>
      `${root}${scope === "Namespaced" ? `/namespaces/${namespace}` : ""}/${resource}`;
    for (const verb of verbs) rights.push({ group, resource, verb, callIn: callOf(verb, collection) });
    for (const { subresource, verbs } of subresources) {
      const path = (namespace: string): string => `${collection(namespace)}/somebodys/${subresource}`;
      for (const verb of verbs) {
        const callIn = (namespace: string): string => `${methodOf(verb)} ${path(namespace)}`;
        rights.push({ group, resource: `${resource}/${subresource}`, verb, callIn });
      }
    }
  }
  return rights;
}

const ofCollections = new Set(["create", "deletecollection", "list", "watch"]);

const callOf =
  (verb: string, collection: (namespace: string) => string) =>
  (namespace: string): string => {
    const path = collection(namespace) + (ofCollections.has(verb) ? "" : "/somebodys");
    return `${methodOf(verb)} ${path}${verb === "watch" ? "?watch=1" : ""}`;
  };

function methodOf(verb: string): string {
  switch (verb) {
    case "create":
      return "POST";
    case "update":
      return "PUT";
    case "patch":
      return "PATCH";
    case "delete":
    case "deletecollection":
      return "DELETE";
    default:
      return "GET";
  }
}
