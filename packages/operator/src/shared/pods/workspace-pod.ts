/** The pod of a workspace: its name, and which StatefulSet must own it. Pure. */
import { podNameOf, statefulSetNameOf } from "@pko/api";
import {
  asOwner,
  builtin,
  classifyOwnership,
  refKey,
  type Key,
  type ApiObject,
  type Owner,
  type Ownership,
} from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";

export { podNameOf };

/** On the pod: the hash of the Secrets and ConfigMaps that it reads, and of their UIDs. A change replaces the pod. */
export const referencesHashAnnotation = "auto.pulumi.com/references-hash";

/** The workspace of a pod, by the pod's name. */
export function workspaceOfPod({ metadata }: ApiObject<Pod>): Key | undefined {
  const suffix = podNameOf("");
  if (!metadata.name?.endsWith(suffix)) return undefined;
  return refKey({ namespace: metadata.namespace ?? "", name: metadata.name.slice(0, -suffix.length) });
}

/** The StatefulSet that must control the pod. Without its UID, a pod of any StatefulSet of this name is judged "former". */
export function podOwner(workspaceName: string, statefulSetUid = ""): Owner {
  const metadata = { name: statefulSetNameOf(workspaceName), uid: statefulSetUid };
  return asOwner(builtin.statefulSets, { metadata });
}

export function judgePod(pod: ApiObject<Pod>, owner: Owner): Ownership {
  return classifyOwnership({ ...pod, kind: builtin.pods.kind }, owner);
}
