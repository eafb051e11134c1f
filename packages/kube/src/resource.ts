/** The parts that all Kubernetes objects share, and how a kind is addressed in the API. */
import type { ObjectMeta as FullObjectMeta } from "kubernetes-types/meta/v1";

export type ObjectMeta = FullObjectMeta;

export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

/** A kind as the API server serves it. `T` exists only in the type. */
export interface Resource<T extends KubeObject = KubeObject> {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** Set by `metadataOf`. */
  readonly view?: "metadata";
  /** Never present at run time. */
  readonly object?: T;
}

export interface ResourceNames {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

export function resource<T extends KubeObject>(names: ResourceNames): Resource<T> {
  return names;
}

/** The same kind, but get, list and watch return only the metadata of its objects. */
export function metadataOf({ apiVersion, kind, plural, namespaced }: Resource): Resource {
  return { apiVersion, kind, plural, namespaced, view: "metadata" };
}

/** Name and namespace of an object. Cluster-scoped objects have no namespace. */
export interface ObjectRef {
  readonly name: string;
  readonly namespace?: string;
}

/** The identity of an object within its kind: `namespace/name`, or `name` when cluster-scoped. */
export type Key = string;

export function keyOf(object: { readonly metadata: { name?: string; namespace?: string } }): Key {
  return refKey({
    name: object.metadata.name ?? "",
    ...(object.metadata.namespace && { namespace: object.metadata.namespace }),
  });
}

export function refKey(ref: ObjectRef): Key {
  return ref.namespace ? `${ref.namespace}/${ref.name}` : ref.name;
}

export function parseKey(key: Key): ObjectRef {
  const slash = key.indexOf("/");
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** Empty for a cluster-scoped object. */
export function namespaceOf(key: Key): string {
  return key.slice(0, Math.max(0, key.indexOf("/")));
}

/** The API group of an apiVersion; empty for the core group. */
export function groupOf(apiVersion: string): string {
  return apiVersion.slice(0, Math.max(0, apiVersion.indexOf("/")));
}
