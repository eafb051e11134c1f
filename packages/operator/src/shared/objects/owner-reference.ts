/** References from an object to its owners. */
import type { ObjectMeta } from "@pko/kube";

type OwnerReference = NonNullable<ObjectMeta["ownerReferences"]>[number];

interface Owner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Pick<ObjectMeta, "name" | "uid">;
}

interface OwnerReferenceOptions {
  /** The controller of an object is the owner that manages it; there is at most one. */
  readonly controller: boolean;
  /** Whether a foreground deletion of the owner waits until this object is deleted. */
  readonly blockOwnerDeletion: boolean;
}

export function ownerReference({ apiVersion, kind, metadata }: Owner, options: OwnerReferenceOptions): OwnerReference {
  return { apiVersion, kind, name: metadata.name ?? "", uid: metadata.uid ?? "", ...options };
}
