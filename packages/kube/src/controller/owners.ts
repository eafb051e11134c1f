/** From an object to those that own it. */
import { groupOf, refKey, type Key, type KubeObject, type Resource } from "../resource.ts";
import type { Change } from "../store/store.ts";

export type OwnerKind = Pick<Resource, "apiVersion" | "kind" | "namespaced">;

/**
 * The owners of this kind that an object names, before and after the change: who lost it must look, too. Every owner
 * counts, not only the one that is its controller: an object may have one of another kind besides.
 */
export function ownerKeys(change: Change<KubeObject>, owner: OwnerKind): Key[] {
  const keys = [change.before, change.after].flatMap((object) => (object ? ownersOf(object, owner) : []));
  return [...new Set(keys)];
}

function ownersOf(object: KubeObject, owner: OwnerKind): Key[] {
  const { namespace } = object.metadata;
  return (object.metadata.ownerReferences ?? [])
    .filter(({ kind, apiVersion }) => kind === owner.kind && groupOf(apiVersion) === groupOf(owner.apiVersion))
    .map(({ name }) => refKey({ name, ...(owner.namespaced && namespace !== undefined && { namespace }) }));
}
