/** The configuration files of the cluster's programs, written to the state folder. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { privateFolder, type Layout } from "./layout.ts";
import { network } from "./network.ts";
import { containerdSocketOf, firstNode, secondNode, type ClusterNode } from "./nodes.ts";
import { registryUrl } from "./registry.ts";

export const containerdSocket = containerdSocketOf(firstNode);
export const cgroup = "pko-cluster";
export const pauseImage = "localhost/pause:1";

export async function writeConfigFiles(layout: Layout): Promise<void> {
  for (const folder of ["cni", "cni-second", "registries/_default"])
    await mkdir(join(layout.config, folder), { recursive: true });
  const files = {
    "containerd.toml": containerdConfig(layout, firstNode),
    "containerd-second.toml": containerdConfig(layout, secondNode),
    // Only the store: for removing the containers of a killed run before the runtime tries to resume them.
    "containerd-store.toml": `disabled_plugins = ["io.containerd.grpc.v1.cri"]\n${containerdConfig(layout, firstNode)}`,
    "cni/local.conflist": json(cniConfig(firstNode)),
    "cni-second/second.conflist": json(cniConfig(secondNode)),
    // A mirror of every registry: images that it does not have are pulled from the registry itself, if it is reachable.
    "registries/_default/hosts.toml": `[host."${registryUrl}"]\n  capabilities = ["pull", "resolve"]\n`,
    "kubelet.yaml": json(kubeletConfig(layout, firstNode)),
    "kubelet-second.yaml": json(kubeletConfig(layout, secondNode)),
    "resolv.conf": `nameserver ${network.resolver}\n`,
    Corefile: corefile(layout),
    "bootstrap.json": json({ apiVersion: "v1", kind: "List", items: bootstrapObjects }),
  };
  for (const [name, content] of Object.entries(files)) await writeFile(join(layout.config, name), content);
}

export function registriesFolder(layout: Layout): string {
  return join(layout.config, "registries");
}

function containerdConfig(layout: Layout, node: ClusterNode): string {
  return `version = 2
root = "${node === firstNode ? layout.containerd : layout.secondContainerd}"
state = "${node.containerdState}"
[grpc]
  address = "${containerdSocketOf(node)}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pauseImage}"
  # A machine that is a container may not lower its OOM score.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "${registriesFolder(layout)}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${layout.config}/cni${node.suffix}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
`;
}

const cniConfig = (node: ClusterNode): object => ({
  cniVersion: "0.4.0",
  name: node.name,
  plugins: [
    {
      type: "bridge",
      bridge: "cni0",
      isGateway: true,
      ipMasq: true,
      hairpinMode: true,
      ipam: {
        type: "host-local",
        ranges: [[{ subnet: network.pods, rangeStart: node.firstPod }]],
        routes: [{ dst: "0.0.0.0/0" }],
      },
    },
    { type: "portmap", capabilities: { portMappings: true } },
  ],
});

const firstPodLogs = "/var/log/pods";
const secondPodLogs = (layout: Layout): string => join(layout.volatile, `pod-logs${secondNode.suffix}`);

/** Where other processes of this machine find the logs of pods. */
export const podLogFolders = (layout: Layout): string[] => [privateFolder(layout, firstPodLogs), secondPodLogs(layout)];

function kubeletConfig(layout: Layout, node: ClusterNode): object {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    failCgroupV1: false,
    cgroupDriver: "cgroupfs",
    // With cgroups v2, too, the kernel kills the process that is out of memory, and not the whole container.
    singleProcessOOMKill: true,
    // Separate cgroups, so that removing them never touches those of another kubelet.
    cgroupRoot: join("/", cgroup, node.cgroup),
    port: node.kubeletPort,
    registerWithTaints: [...node.taints],
    healthzPort: node.healthPort,
    // Separate folders, because a kubelet removes the logs of pods that it does not know.
    podLogsDir: node === firstNode ? firstPodLogs : secondPodLogs(layout),
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: join(layout.pki, "ca.crt") },
    },
    authorization: { mode: "Webhook" },
    containerRuntimeEndpoint: `unix://${containerdSocketOf(node)}`,
    failSwapOn: false,
    evictionHard: { "memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%" },
    imageGCHighThresholdPercent: 99,
    imageGCLowThresholdPercent: 98,
    maxPods: 250,
    serializeImagePulls: false,
    // A changed Secret reaches the volumes of running pods within this time, by default a minute.
    syncFrequency: "10s",
    resolvConf: join(layout.config, "resolv.conf"),
    clusterDNS: [network.node],
    clusterDomain: "cluster.local",
    shutdownGracePeriod: "0s",
  };
}

function corefile(layout: Layout): string {
  return `.:53 {
  bind ${network.node}
  errors
  ready ${network.node}:8181
  kubernetes cluster.local in-addr.arpa {
    kubeconfig ${layout.kubeconfig}
    pods insecure
    ttl 1
  }
  forward . ${network.resolver}
}
`;
}

/** Objects that exist in every new cluster. */
const bootstrapObjects: readonly object[] = [
  {
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name: "local", annotations: { "storageclass.kubernetes.io/is-default-class": "true" } },
    provisioner: "local/host-path",
    reclaimPolicy: "Delete",
    volumeBindingMode: "Immediate",
  },
  {
    // Relying parties of service account tokens fetch the issuer's keys without authentication.
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: "service-account-issuer-discovery" },
    roleRef: {
      apiGroup: "rbac.authorization.k8s.io",
      kind: "ClusterRole",
      name: "system:service-account-issuer-discovery",
    },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: "system:unauthenticated" }],
  },
];

function json(document: object): string {
  return `${JSON.stringify(document, undefined, 2)}\n`;
}
