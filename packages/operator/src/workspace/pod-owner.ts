/** Whose a pod with the name of a workspace's pod is: the workspace's StatefulSet must be its controller. Pure. */
import { statefulSetNameOf } from "@pko/api";
import { asOwner, builtin, judgeOwnership, type Known, type Owner, type Ownership } from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";

/** Without a UID, a pod that a StatefulSet of the workspace's name controls is judged "former". */
export function podOwner(workspaceName: string, statefulSetUid = ""): Owner {
  const metadata = { name: statefulSetNameOf(workspaceName), uid: statefulSetUid };
  return asOwner(builtin.statefulSets, { metadata });
}

export function judgePod(pod: Known<Pod>, owner: Owner): Ownership {
  return judgeOwnership({ ...pod, kind: builtin.pods.kind }, owner);
}
