/**
 * When a pod's node counts as lost, and what to report then. Pure. The operator may not read nodes, so it derives this from
 * the pod's status (docs/adr/0015-locks-and-lost-nodes.md).
 */
import { timestamp, type ApiObject } from "@pko/kube";
import type { Pod, PodCondition } from "kubernetes-types/core/v1";
import { parseTimestamp } from "../parse-timestamp.ts";

/** The default time after which Kubernetes evicts pods from a node that does not respond. */
export const defaultLostNodeMs = 5 * 60_000;

/** A pod whose kubelet has missed a deadline. */
export interface OverduePod {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
}

export function overduePod(pod: ApiObject<Pod>): OverduePod | undefined {
  const { namespace = "", name = "" } = pod.metadata;
  const node = pod.spec?.nodeName;
  const times = [endOfGrace(pod), nodeNotReadySince(pod)].filter((time) => time !== undefined);
  return node === undefined || times.length === 0 ? undefined : { namespace, name, node, since: Math.min(...times) };
}

/** When the node of a pod counts as lost if the pod does not respond before. */
export function lostNodeAt(overdue: OverduePod | undefined, afterMs: number): number {
  return overdue ? overdue.since + afterMs : Infinity;
}

/** The deletion timestamp is the end of the grace period: a kubelet that works has confirmed the end of the pod by then. */
function endOfGrace({ metadata }: ApiObject<Pod>): number | undefined {
  return parseTimestamp(metadata.deletionTimestamp);
}

/**
 * The node lifecycle controller changes the condition Ready of the pods of a node that does not respond, and nothing else.
 * A kubelet that finds a pod not ready also reports its containers as not ready, or names a readiness gate. The controller
 * does not change a pod that was not ready before, so a lost node does not show in such a pod (docs/adr/0015).
 */
function nodeNotReadySince({ status }: ApiObject<Pod>): number | undefined {
  const condition = (wanted: string): PodCondition | undefined =>
    status?.conditions?.find(({ type }) => type === wanted);
  const [ready, containers] = [condition("Ready"), condition("ContainersReady")];
  if (!ready || ready.status === "True" || containers?.status !== "True") return undefined;
  return ready.reason === "ReadinessGatesNotReady" ? undefined : parseTimestamp(ready.lastTransitionTime);
}

/** `consequence` is a clause: what is unknown or blocked while the pod does not respond. */
export function lostNodeMessage({ namespace, name, node, since }: OverduePod, consequence: string): string {
  return (
    `Pod ${name} on node ${node} has not responded since ${timestamp(since)}. The node may be lost, and ${consequence}. ` +
    "If the node returns, this continues automatically. " +
    `If it is shut down permanently, run: kubectl taint nodes ${node} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute. ` +
    `If you know that it is dead, run: kubectl delete pod ${name} -n ${namespace} --force --grace-period=0. ` +
    "Warning: doing either while the node is alive can run two updates at once."
  );
}
