/** Decides whether an object may be written or deleted: only its owner may do that. Pure. */
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

/** What a write is conditional on: an object that was replaced or changed meanwhile has another. */
export interface ObjectVersion {
  readonly uid: string;
  readonly resourceVersion: string;
}

/** An object that has the name that we need, and is not ours. */
export interface Occupant extends ObjectRef {
  readonly kind: string;
  readonly owner?: { readonly kind: string; readonly name: string };
}

export type Occupied =
  /** Its owner had the kind and name of ours and is deleted: the garbage collector is about to delete it, too. */
  { readonly kind: "former"; readonly occupant: Occupant } | { readonly kind: "foreign"; readonly occupant: Occupant };

export type Ownership =
  | { readonly kind: "absent" }
  /** Its controller is the owner, by UID. */
  | { readonly kind: "ours"; readonly version: ObjectVersion }
  /** It has no controller, and the owner, by UID, is among its owners. */
  | { readonly kind: "dependent"; readonly version: ObjectVersion; readonly occupant: Occupant }
  | Occupied;

export function judgeOwnership(existing: KubeObject | undefined, owner: Owner): Ownership {
  if (!existing) return { kind: "absent" };
  const { uid = "", resourceVersion = "", ownerReferences = [] } = existing.metadata;
  const version = { uid, resourceVersion };
  const controller = ownerReferences.find((reference) => reference.controller);
  if (controller && isReferenceTo(controller, owner)) return { kind: "ours", version };
  const holder = controller ?? ownerReferences[0];
  const occupant = occupantOf(existing, holder);
  if (!controller && isOwnedBy(existing, owner)) return { kind: "dependent", version, occupant };
  return { kind: holder && isReferenceToFormer(holder, owner) ? "former" : "foreign", occupant };
}

/** Whether it is among the owners of an object, as its controller or beside it. */
export function isOwnedBy({ metadata }: Pick<KubeObject, "metadata">, owner: Pick<Owner, "uid">): boolean {
  return metadata.ownerReferences?.some((reference) => isReferenceTo(reference, owner)) ?? false;
}

const isReferenceTo = ({ uid }: OwnerReference, owner: Pick<Owner, "uid">): boolean =>
  owner.uid !== "" && uid === owner.uid;

/** A name is unique within its kind: where the owner has it, the object that had it before is deleted. */
function isReferenceToFormer(reference: OwnerReference, owner: Owner): boolean {
  return (
    reference.kind === owner.kind &&
    reference.name === owner.name &&
    groupOf(reference.apiVersion) === groupOf(owner.apiVersion)
  );
}

function occupantOf({ kind, metadata }: KubeObject, holder: OwnerReference | undefined): Occupant {
  const { name = "", namespace } = metadata;
  return {
    kind,
    name,
    ...(namespace !== undefined && { namespace }),
    ...(holder && { owner: { kind: holder.kind, name: holder.name } }),
  };
}
