/** Every permission that the API server knows, and the call that needs it. */
import { fetchTransport, type Credentials } from "@pko/kube";

export interface Right {
  /** Empty for the core group. */
  readonly group: string;
  /** With its subresource: `pods/exec`. */
  readonly resource: string;
  readonly verb: string;
  /** Method and path, in the namespace if the resource is namespaced. */
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

/** For all resources, in the preferred version. */
export async function servedRights(admin: Credentials): Promise<Right[]> {
  const groups = await Promise.all(["/api", "/apis"].map((path) => discover(admin, path)));
  return groups.flat().flatMap(groupRights);
}

async function discover(admin: Credentials, path: string): Promise<readonly Discovered[]> {
  const { token, tls } = await admin.access();
  const response = await fetchTransport({
    method: "GET",
    url: `${admin.server}${path}`,
    headers: { accept, authorization: `Bearer ${token}` },
    tls,
    signal: AbortSignal.timeout(30_000),
    freshConnection: false,
  });
  return ((await response.json()) as { readonly items: readonly Discovered[] }).items;
}

function groupRights({ metadata: { name: group = "" }, versions: [preferred] }: Discovered): Right[] {
  if (!preferred) return [];
  const root = group === "" ? `/api/${preferred.version}` : `/apis/${group}/${preferred.version}`;
  const rights: Right[] = [];
  for (const { resource, scope, verbs, subresources = [] } of preferred.resources ?? []) {
    const collection = (namespace: string): string =>
      `${root}${scope === "Namespaced" ? `/namespaces/${namespace}` : ""}/${resource}`;
    for (const verb of verbs) rights.push({ group, resource, verb, callIn: callFor(verb, collection) });
    for (const { subresource, verbs } of subresources) {
      const path = (namespace: string): string => `${collection(namespace)}/other/${subresource}`;
      for (const verb of verbs) {
        const callIn = (namespace: string): string => `${httpMethod(verb)} ${path(namespace)}`;
        rights.push({ group, resource: `${resource}/${subresource}`, verb, callIn });
      }
    }
  }
  return rights;
}

const collectionVerbs = new Set(["create", "deletecollection", "list", "watch"]);

const callFor =
  (verb: string, collection: (namespace: string) => string) =>
  (namespace: string): string => {
    const path = collection(namespace) + (collectionVerbs.has(verb) ? "" : "/other");
    return `${httpMethod(verb)} ${path}${verb === "watch" ? "?watch=1" : ""}`;
  };

function httpMethod(verb: string): string {
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
