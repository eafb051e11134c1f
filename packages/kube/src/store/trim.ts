/** Saves memory: drops the parts of an object that no controller reads. */
import type { KubeObject } from "../resource.ts";

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";

/** Without managed fields, which are often half of an object, and kubectl's copy of the manifest. */
export function trimmed<T extends KubeObject>(object: T): T {
  const { managedFields: _, ...metadata } = object.metadata;
  if (metadata.annotations && lastApplied in metadata.annotations) {
    const { [lastApplied]: _, ...annotations } = metadata.annotations;
    metadata.annotations = annotations;
  }
  return { ...object, metadata };
}
