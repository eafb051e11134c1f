/** A record as the operator keeps it in memory: who it belongs to and how large it is, never its content. */
import { recordSizeAnnotation, updateKind } from "@pko/api";
import type { KubeObject } from "@pko/kube";

/** Drops everything of the metadata that `storedRecord` does not read. */
export function trimRecord({ apiVersion, kind, metadata }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, annotations, ownerReferences } = metadata;
  const { creationTimestamp, deletionTimestamp } = metadata;
  const size = annotations?.[recordSizeAnnotation];
  return {
    apiVersion,
    kind,
    metadata: {
      ...(name !== undefined && { name }),
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
      ...(creationTimestamp !== undefined && { creationTimestamp }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
      ...(size !== undefined && { annotations: { [recordSizeAnnotation]: size } }),
      ...(ownerReferences && { ownerReferences: ownerReferences.filter(isUpdate) }),
    },
  };
}

export interface StoredRecord {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  /** In RFC 3339, so that texts compare like times. */
  readonly createdAt: string;
  readonly bytes: number;
  /** The UID of its Update, which has the same name. */
  readonly updateUid: string;
}

/**
 * Undefined for an object that the operator did not write: it is neither counted nor deleted. The same applies to a record
 * that is being deleted: someone else's finalizer may keep it for long.
 */
export function storedRecord({ metadata }: KubeObject): StoredRecord | undefined {
  const { name = "", namespace = "", uid = "", creationTimestamp = "", annotations, ownerReferences = [] } = metadata;
  const bytes = Number(annotations?.[recordSizeAnnotation]);
  const owner = ownerReferences.find((reference) => isUpdate(reference) && reference.controller === true);
  if (metadata.deletionTimestamp || !owner || !Number.isInteger(bytes) || bytes <= 0) return undefined;
  return { name, namespace, uid, createdAt: creationTimestamp, bytes, updateUid: owner.uid };
}

const isUpdate = ({ kind }: { readonly kind: string }): boolean => kind === updateKind.kind;
