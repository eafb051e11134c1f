/**
 * When a pod's node counts as lost, and what to tell whoever waits for the pod. Pure. The operator may not read nodes, so
 * the pod's own status has to do (docs/adr/0015-locks-and-lost-nodes.md).
 */
import type { Known } from "@pko/kube";
import type { Pod, PodCondition } from "kubernetes-types/core/v1";

/** The toleration that Kubernetes gives pods before it evicts them from a node that does not respond. */
export const defaultLostNodeMs = 5 * 60_000;

/** A pod whose kubelet has not done what a living one does. */
export interface OverduePod {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
}

export function overduePod(pod: Known<Pod>): OverduePod | undefined {
  const { namespace = "", name = "" } = pod.metadata;
  const node = pod.spec?.nodeName;
  const times = [endOfGrace(pod), nodeNotReadySince(pod)].filter((time) => time !== undefined);
  return node === undefined || times.length === 0 ? undefined : { namespace, name, node, since: Math.min(...times) };
}

/** When the node of a pod counts as lost, unless the pod responds before. */
export function lostNodeAt(overdue: OverduePod | undefined, afterMs: number): number {
  return overdue ? overdue.since + afterMs : Infinity;
}

/** The deletion timestamp is the end of the grace period: by then the kubelet has ended the pod and confirmed it. */
function endOfGrace({ metadata }: Known<Pod>): number | undefined {
  return timeOf(metadata.deletionTimestamp);
}

/**
 * The node lifecycle controller changes the condition Ready of the pods of a node that does not respond, and nothing else.
 * A kubelet that finds a pod not ready says so of its containers too, or names a readiness gate. That controller leaves
 * a pod alone that was not ready before, so nothing shows that the node of such a pod is silent (docs/adr/0015).
 */
function nodeNotReadySince({ status }: Known<Pod>): number | undefined {
  const condition = (wanted: string): PodCondition | undefined =>
    status?.conditions?.find(({ type }) => type === wanted);
  const [ready, containers] = [condition("Ready"), condition("ContainersReady")];
  if (!ready || ready.status === "True" || containers?.status !== "True") return undefined;
  return ready.reason === "ReadinessGatesNotReady" ? undefined : timeOf(ready.lastTransitionTime);
}

function timeOf(text: unknown): number | undefined {
  const time = Date.parse(typeof text === "string" ? text : "");
  return Number.isNaN(time) ? undefined : time;
}

interface Waiting {
  /** What nobody can tell while the pod does not respond, as a clause. */
  readonly doubt: string;
}

export function lostNodeMessage({ namespace, name, node, since }: OverduePod, { doubt }: Waiting): string {
  const time = new Date(since).toISOString().replace(/\.\d+Z$/, "Z");
  return (
    `Pod ${name} on node ${node} has not responded since ${time}. The node may be lost, and ${doubt}. ` +
    "If the node is back, this continues by itself. " +
    `If it is shut down for good, run: kubectl taint nodes ${node} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute. ` +
    `If you know that it is dead, run: kubectl delete pod ${name} -n ${namespace} --force --grace-period=0. ` +
    "Warning: doing either while the node is alive can run two updates at once."
  );
}
