/**
 * The nodes of the cluster: one that always runs, and a second for tests that lose a node. Each has its own kubelet and
 * containerd in the namespaces of the cluster, with different folders and ports.
 */
import { join } from "node:path";

import type { Layout } from "./layout.ts";
import { network } from "./network.ts";

export interface ClusterNode {
  readonly name: string;
  readonly address: string;
  /** The suffix of its kubelet's kubeconfig, its components and their files. */
  readonly suffix: string;
  /** The first of its pods' addresses. */
  readonly firstPod: string;
  readonly containerdState: string;
  /** Relative to the cluster's cgroup; "" for that cgroup itself. */
  readonly cgroup: string;
  readonly kubeletPort: number;
  readonly healthPort: number;
  /** Pods must tolerate them to be scheduled here. */
  readonly taints: readonly Taint[];
}

interface Taint {
  readonly key: string;
  readonly effect: "NoSchedule";
}

export const firstNode: ClusterNode = {
  name: "local",
  address: network.node,
  suffix: "",
  firstPod: network.firstPod,
  containerdState: "/run/containerd",
  cgroup: "",
  kubeletPort: 10250,
  healthPort: 10248,
  taints: [],
};

export const secondNode: ClusterNode = {
  name: "second",
  address: network.secondNode,
  suffix: "-second",
  firstPod: network.secondFirstPod,
  containerdState: "/run/containerd/second",
  cgroup: "second",
  kubeletPort: 10260,
  healthPort: 10258,
  // Only for the test that loses the node: other tests run at the same time.
  taints: [{ key: "pulumi.com/second-node", effect: "NoSchedule" }],
};

export const allNodes: readonly ClusterNode[] = [firstNode, secondNode];

export const containerdSocketOf = ({ containerdState }: ClusterNode): string =>
  join(containerdState, "containerd.sock");

/** The folder of its kubelet; the kubelet's default for the first node. */
export function kubeletFolder(layout: Layout, node: ClusterNode): string {
  return node.suffix === "" ? "/var/lib/kubelet" : join(layout.volatile, `kubelet${node.suffix}`);
}
