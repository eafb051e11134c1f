/** Decides who owns an object: only its owner may write or delete it. Pure. */
import { groupOf, type KubeObject, type ObjectMeta, type ObjectRef, type Resource } from "../resource.ts";

type OwnerReference = NonNullable<ObjectMeta["ownerReferences"]>[number];

/** The object on whose behalf something is written. */
export interface Owner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

export function asOwner(
  { apiVersion, kind }: Pick<Resource, "apiVersion" | "kind">,
  { metadata }: Pick<KubeObject, "metadata">,
): Owner {
  return { apiVersion, kind, name: metadata.name ?? "", uid: metadata.uid ?? "" };
}

/** The precondition of a write: it fails if the object was replaced or changed. */
export interface ObjectVersion {
  readonly uid: string;
  readonly resourceVersion: string;
}

/** An object of another owner that has the name we need. */
export interface Occupant extends ObjectRef {
  readonly kind: string;
  readonly owner?: { readonly kind: string; readonly name: string };
}

export type Occupied =
  /** Its owner was a deleted object with the same kind and name: the garbage collector is about to delete it. */
  { readonly kind: "former"; readonly occupant: Occupant } | { readonly kind: "foreign"; readonly occupant: Occupant };

export type Ownership =
  | { readonly kind: "absent" }
  /** The owner is its controller, by UID. */
  | { readonly kind: "ours"; readonly version: ObjectVersion }
  /** It has no controller, and the owner is one of its owners, by UID. */
  | { readonly kind: "dependent"; readonly version: ObjectVersion; readonly occupant: Occupant }
  | Occupied;

export function classifyOwnership(existing: KubeObject | undefined, owner: Owner): Ownership {
  if (!existing) return { kind: "absent" };
  const { uid = "", resourceVersion = "", ownerReferences = [] } = existing.metadata;
  const version = { uid, resourceVersion };
  const controller = ownerReferences.find((each) => each.controller);
  if (controller && isReferenceTo(controller, owner)) return { kind: "ours", version };
  const reference = controller ?? ownerReferences[0];
  const occupant = occupantOf(existing, reference);
  if (!controller && isOwnedBy(existing, owner)) return { kind: "dependent", version, occupant };
  return { kind: reference && isReferenceToFormer(reference, owner) ? "former" : "foreign", occupant };
}

/** Whether `owner` is one of the object's owners, as its controller or not. */
export function isOwnedBy({ metadata }: Pick<KubeObject, "metadata">, owner: Pick<Owner, "uid">): boolean {
  return metadata.ownerReferences?.some((each) => isReferenceTo(each, owner)) ?? false;
}

const isReferenceTo = ({ uid }: OwnerReference, owner: Pick<Owner, "uid">): boolean =>
  owner.uid !== "" && uid === owner.uid;

/** Names are unique within a kind: since the owner exists, a previous object with its name has been deleted. */
function isReferenceToFormer(reference: OwnerReference, owner: Owner): boolean {
  return (
    reference.kind === owner.kind &&
    reference.name === owner.name &&
    groupOf(reference.apiVersion) === groupOf(owner.apiVersion)
  );
}

function occupantOf({ kind, metadata }: KubeObject, reference: OwnerReference | undefined): Occupant {
  const { name = "", namespace } = metadata;
  return {
    kind,
    name,
    ...(namespace !== undefined && { namespace }),
    ...(reference && { owner: { kind: reference.kind, name: reference.name } }),
  };
}
