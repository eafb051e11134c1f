/** The replicas of the operator. Pure. */
import type { ObjectMeta } from "./collection.ts";

export interface Pod extends ObjectMeta {
  readonly metadata: ObjectMeta["metadata"] & { readonly creationTimestamp?: string };
  readonly spec?: { readonly containers?: readonly { readonly image?: string }[] };
  readonly status?: { readonly phase?: string; readonly containerStatuses?: readonly ContainerStatus[] };
}

interface ContainerStatus {
  readonly ready?: boolean;
  readonly restartCount?: number;
  readonly state?: { readonly waiting?: { readonly reason?: string } };
}

export interface Replica {
  readonly name: string;
  /** `ready`, or why it is not. */
  readonly state: string;
  readonly isReady: boolean;
  readonly isLeader: boolean;
  readonly restarts: number;
  readonly image: string;
  readonly createdAt?: string;
}

/** `holder` is that of the Lease: the name of the leader's pod, and a random part. */
export function replicasOf(pods: readonly Pod[], holder: string): Replica[] {
  return pods.map((pod) => replicaOf(pod, holder)).toSorted((a, b) => a.name.localeCompare(b.name));
}

function replicaOf({ metadata, spec, status }: Pod, holder: string): Replica {
  const { name = "", creationTimestamp: createdAt } = metadata;
  const { phase = "Unknown", containerStatuses = [] } = status ?? {};
  const isReady = containerStatuses.length > 0 && containerStatuses.every(({ ready }) => ready === true);
  const waiting = containerStatuses.map(({ state }) => state?.waiting?.reason).find(Boolean);
  return {
    name,
    state: isReady ? "ready" : (waiting ?? (phase === "Running" ? "not ready" : phase)),
    isReady,
    isLeader: holder === name || holder.startsWith(`${name}_`),
    restarts: containerStatuses.reduce((sum, { restartCount = 0 }) => sum + restartCount, 0),
    image: spec?.containers?.[0]?.image ?? "",
    ...(createdAt !== undefined && { createdAt }),
  };
}
