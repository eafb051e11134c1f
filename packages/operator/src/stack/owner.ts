/** References from an object to those that own it. */
import type { KubeObject, ObjectMeta } from "@pko/kube";

type OwnerReference = NonNullable<ObjectMeta["ownerReferences"]>[number];

export function ownerOf(owner: KubeObject, { controller }: { readonly controller: boolean }): OwnerReference {
  return {
    apiVersion: owner.apiVersion,
    kind: owner.kind,
    name: owner.metadata.name ?? "",
    uid: owner.metadata.uid ?? "",
    controller,
    // A deletion in the foreground would take the workspace away before it has destroyed anything.
    blockOwnerDeletion: false,
  };
}
