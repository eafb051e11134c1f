/** Maps an object to its owners. */
import { groupOf, refKey, type Key, type KubeObject, type Resource } from "../resource.ts";
import type { Change } from "../store/store.ts";

export type OwnerKind = Pick<Resource, "apiVersion" | "kind" | "namespaced">;

/**
 * The owners of this kind in an object's owner references, before and after the change: an owner that lost the object is
 * reconciled too. Every owner counts, not only the controller, which may have another kind.
 */
export function ownerKeys(change: Change<KubeObject>, owner: OwnerKind): Key[] {
  const keys = [change.before, change.after].flatMap((object) => (object ? ownersIn(object, owner) : []));
  return [...new Set(keys)];
}

function ownersIn(object: KubeObject, owner: OwnerKind): Key[] {
  const { namespace } = object.metadata;
  return (object.metadata.ownerReferences ?? [])
    .filter(({ kind, apiVersion }) => kind === owner.kind && groupOf(apiVersion) === groupOf(owner.apiVersion))
    .map(({ name }) => refKey({ name, ...(owner.namespaced && namespace !== undefined && { namespace }) }));
}
