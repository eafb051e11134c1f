/** URL paths of kinds and objects. */
import type { ObjectRef, Resource } from "../../resource.ts";

type Names = Pick<Resource, "apiVersion" | "plural" | "namespaced">;

/** The path of all objects of a kind, in one namespace if that is given. */
export function collectionPath(resource: Names, namespace?: string): string {
  const root = resource.apiVersion.includes("/") ? `/apis/${resource.apiVersion}` : `/api/${resource.apiVersion}`;
  if (namespace === undefined || !resource.namespaced) return `${root}/${resource.plural}`;
  return `${root}/namespaces/${segment(namespace, "namespace")}/${resource.plural}`;
}

export function objectPath(resource: Names, ref: ObjectRef, subresource?: string): string {
  if (resource.namespaced && ref.namespace === undefined) {
    throw new TypeError(`${resource.plural} "${ref.name}" needs a namespace`);
  }
  const path = `${collectionPath(resource, ref.namespace)}/${segment(ref.name, "name")}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** An empty name would address the whole collection, and a slash or dots another object. */
function segment(value: string, what: string): string {
  if (value === "" || value === "." || value === ".." || value.includes("/")) {
    throw new TypeError(`"${value}" is not a valid ${what}`);
  }
  return encodeURIComponent(value);
}

/** The media type of a response with one object or a list. */
export function acceptedType(resource: Pick<Resource, "view">, content: "object" | "list"): string {
  if (resource.view === undefined) return "application/json";
  // A server that does not support the view sends the whole object.
  const kind = content === "list" ? "PartialObjectMetadataList" : "PartialObjectMetadata";
  return `application/json;as=${kind};g=meta.k8s.io;v=v1,application/json`;
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export function queryString(query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value));
  const text = parameters.toString();
  return text === "" ? "" : `?${text}`;
}
