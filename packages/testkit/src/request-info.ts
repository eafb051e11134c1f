/** The meaning of a request in terms of RBAC rules. */

type Verb = "get" | "list" | "watch" | "create" | "update" | "patch" | "apply" | "delete" | "deletecollection";

export interface RequestInfo {
  /** RBAC treats `apply` as `patch`. */
  readonly verb: Verb;
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** Plural; empty for a path that is not a resource, such as /readyz. */
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
}

interface RequestLine {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly contentType: string;
}

const resourcePath =
  /^\/(?:api|apis\/(?<group>[^/]+))\/(?<version>v[^/]+)(?:\/namespaces\/(?<namespace>[^/]+)(?=\/.))?\/(?<resource>[^/]+)(?:\/(?<name>[^/]+))?(?:\/(?<subresource>.+))?$/;

export function requestInfo(line: RequestLine): RequestInfo {
  const parts = resourcePath.exec(line.path)?.groups;
  const { group = "", version = "", resource = "", namespace, name, subresource } = parts ?? {};
  // The subresources of a namespace look like objects in it.
  if (namespace !== undefined && (resource === "status" || resource === "finalize")) {
    return {
      verb: requestVerb(line, namespace),
      group,
      version,
      resource: "namespaces",
      name: namespace,
      subresource: resource,
    };
  }
  return {
    verb: requestVerb(line, name),
    group,
    version,
    resource,
    ...(namespace !== undefined && { namespace }),
    ...(name !== undefined && { name }),
    ...(subresource !== undefined && { subresource }),
  };
}

function requestVerb({ method, query, contentType }: RequestLine, name: string | undefined): Verb {
  switch (method) {
    case "POST":
      return "create";
    case "PUT":
      return "update";
    case "PATCH":
      return contentType.startsWith("application/apply-patch") ? "apply" : "patch";
    case "DELETE":
      return name === undefined ? "deletecollection" : "delete";
    default:
      if (["true", "1"].includes(query.get("watch") ?? "")) return "watch";
      return name === undefined ? "list" : "get";
  }
}
