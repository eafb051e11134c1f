/**
 * The nodes of the cluster: one that is always there, and a second for tests that lose a node. Both are kubelets with a
 * containerd of their own, in the namespaces of the one cluster; what they keep and where they listen sets them apart.
 */
import { join } from "node:path";

import type { Layout } from "./layout.ts";
import { network } from "./network.ts";

export interface ClusterNode {
  readonly name: string;
  readonly address: string;
  /** Of its kubelet's kubeconfig, and of its components and their files. */
  readonly suffix: string;
  /** Of the addresses that its pods get. */
  readonly firstPod: string;
  readonly containerdState: string;
  /** Below the cluster's control group; "" for that itself. */
  readonly cgroup: string;
  readonly kubeletPort: number;
  readonly healthPort: number;
  /** Pods have to tolerate them to be scheduled there. */
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
  // Only for the test that loses it: other tests run at the same time.
  taints: [{ key: "pulumi.com/second-node", effect: "NoSchedule" }],
};

export const allNodes: readonly ClusterNode[] = [firstNode, secondNode];

export const containerdSocketOf = ({ containerdState }: ClusterNode): string =>
  join(containerdState, "containerd.sock");

/** The folder of its kubelet; the kubelet's own default for the first. */
export function kubeletFolder(layout: Layout, node: ClusterNode): string {
  return node.suffix === "" ? "/var/lib/kubelet" : join(layout.volatile, `kubelet${node.suffix}`);
}
