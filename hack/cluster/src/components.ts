/** The programs of the cluster and their arguments, in the order in which they start. */
import { join } from "node:path";

import { containerdSocket } from "./config-files.ts";
import type { Layout } from "./layout.ts";
import { inClusterNetwork, network } from "./network.ts";
import { firstNode, kubeletFolder, secondNode, type ClusterNode } from "./nodes.ts";
import { toolPath } from "./tools.ts";

export interface Component {
  readonly name: string;
  readonly command: readonly string[];
  /** Started only if this file exists: an executable that may be built later, or a file that requests the component. */
  readonly requiredFile?: string;
}

export function components(layout: Layout): Component[] {
  const kubeconfig = (name: string): string => `--kubeconfig=${join(layout.kubeconfigs, `${name}.yaml`)}`;
  const kube = (name: string, ...flags: string[]): Component => ({
    name,
    command: inClusterNetwork([toolPath("kube"), name, ...flags]),
  });
  return [
    { name: "slirp4netns", command: slirpCommand },
    kube("etcd", ...etcdFlags(layout)),
    kube("kube-apiserver", ...apiServerFlags(layout)),
    containerd(layout, firstNode),
    {
      name: "coredns",
      command: inClusterNetwork([toolPath("coredns"), "-conf", join(layout.config, "Corefile")]),
      requiredFile: toolPath("coredns"),
    },
    kube("kube-controller-manager", kubeconfig("kube-controller-manager"), ...controllerManagerFlags(layout)),
    kube("kube-scheduler", kubeconfig("kube-scheduler"), "--leader-elect=false"),
    kube("kubelet", kubeconfig("kubelet"), ...kubeletFlags(layout, firstNode)),
    kube("kube-proxy", kubeconfig("kube-proxy"), ...proxyFlags),
    kube("host-path-provisioner", kubeconfig("admin"), `--root=${layout.volumes}`),
    { ...containerd(layout, secondNode), requiredFile: layout.secondNode },
    {
      ...kube("kubelet", kubeconfig("kubelet-second"), ...kubeletFlags(layout, secondNode)),
      name: "kubelet-second",
      requiredFile: layout.secondNode,
    },
  ];
}

function containerd(layout: Layout, { suffix }: ClusterNode): Component {
  const name = `containerd${suffix}`;
  return { name, command: inClusterNetwork(["containerd", "--config", join(layout.config, `${name}.toml`)]) };
}

/** A containerd that serves its image store but does not run pods. */
export function storeCommand(layout: Layout): string[] {
  return ["containerd", "--config", join(layout.config, "containerd-store.toml")];
}

export function ctr(...args: string[]): string[] {
  return ["ctr", "--address", containerdSocket, "--namespace", "k8s.io", ...args];
}

/** Runs in the machine's network: it forwards the cluster's traffic through ordinary sockets, without firewall rules. */
const slirpCommand = [
  "slirp4netns",
  "--configure",
  "--mtu=1400",
  "--disable-host-loopback",
  "--netns-type=path",
  network.namespace,
  "tap0",
];

function etcdFlags(layout: Layout): string[] {
  return [
    `--data-dir=${layout.etcd}`,
    "--listen-client-urls=http://127.0.0.1:2379",
    "--advertise-client-urls=http://127.0.0.1:2379",
    "--listen-peer-urls=http://127.0.0.1:2380",
    // Each start uses an empty store, so a power failure loses nothing.
    "--unsafe-no-fsync",
  ];
}

function apiServerFlags(layout: Layout): string[] {
  const pki = (file: string): string => join(layout.pki, file);
  return [
    "--etcd-servers=http://127.0.0.1:2379",
    "--secure-port=6443",
    "--bind-address=0.0.0.0",
    `--advertise-address=${network.node}`,
    `--tls-cert-file=${pki("apiserver.crt")}`,
    `--tls-private-key-file=${pki("apiserver.key")}`,
    `--client-ca-file=${pki("ca.crt")}`,
    "--authorization-mode=Node,RBAC",
    "--enable-admission-plugins=NodeRestriction",
    `--service-cluster-ip-range=${network.services}`,
    `--service-account-key-file=${pki("sa.pub")}`,
    `--service-account-signing-key-file=${pki("sa.key")}`,
    // The machine, pods and test servers can all reach this issuer and verify tokens by discovery.
    `--service-account-issuer=${network.apiServerUrl}`,
    `--api-audiences=${network.apiServerUrl},https://kubernetes.default.svc`,
    `--service-account-jwks-uri=${network.apiServerUrl}/openid/v1/jwks`,
    `--kubelet-client-certificate=${pki("kubelet-client.crt")}`,
    `--kubelet-client-key=${pki("kubelet-client.key")}`,
    "--kubelet-preferred-address-types=InternalIP",
    "--allow-privileged=true",
  ];
}

function controllerManagerFlags(layout: Layout): string[] {
  const pki = (file: string): string => join(layout.pki, file);
  return [
    `--service-account-private-key-file=${pki("sa.key")}`,
    `--root-ca-file=${pki("ca.crt")}`,
    `--cluster-signing-cert-file=${pki("ca.crt")}`,
    `--cluster-signing-key-file=${pki("ca.key")}`,
    "--use-service-account-credentials=true",
    "--leader-elect=false",
  ];
}

function kubeletFlags(layout: Layout, node: ClusterNode): string[] {
  return [
    `--config=${join(layout.config, `kubelet${node.suffix}.yaml`)}`,
    `--hostname-override=${node.name}`,
    `--node-ip=${node.address}`,
    `--root-dir=${kubeletFolder(layout, node)}`,
  ];
}

const proxyFlags = [
  `--cluster-cidr=${network.pods}`,
  `--hostname-override=${firstNode.name}`,
  "--proxy-mode=iptables",
  "--conntrack-max-per-core=0",
  // Without br_netfilter in the kernel, replies between pods on one bridge would not be translated back.
  "--masquerade-all",
];
