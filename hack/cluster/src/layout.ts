/** The state folder of a cluster. Everything but the image store is made anew at each start. */
import { join } from "node:path";

export interface Layout {
  readonly root: string;
  readonly pki: string;
  readonly kubeconfigs: string;
  /** The administrator's kubeconfig: what `make -s kubeconfig` prints. */
  readonly kubeconfig: string;
  readonly config: string;
  readonly logs: string;
  readonly etcd: string;
  readonly volumes: string;
  /** Stands in for the machine's own folders in the cluster's mount namespace. */
  readonly volatile: string;
  /** Images stay between starts: unpacking them again would take most of a start. */
  readonly containerd: string;
  /** The image store of the second node, made anew by each cluster. */
  readonly secondContainerd: string;
  /** While this file exists, the second node runs. */
  readonly secondNode: string;
  /** OCI layouts published to the running cluster. */
  readonly images: string;
  readonly status: string;
  readonly supervisorPid: string;
  readonly supervisorLog: string;
  /** Names the PID namespace of the last start, so that its processes can be told from others. */
  readonly pidNamespace: string;
}

export function layout(root: string): Layout {
  const at = (...parts: string[]): string => join(root, ...parts);
  return {
    root,
    pki: at("pki"),
    kubeconfigs: at("kubeconfigs"),
    kubeconfig: at("kubeconfigs", "admin.yaml"),
    config: at("config"),
    logs: at("logs"),
    etcd: at("etcd"),
    volumes: at("volumes"),
    volatile: at("volatile"),
    containerd: at("containerd"),
    secondContainerd: at("containerd-second"),
    secondNode: at("second-node"),
    images: at("images"),
    status: at("status.json"),
    supervisorPid: at("supervisor.pid"),
    supervisorLog: at("supervisor.log"),
    pidNamespace: at("pid-namespace"),
  };
}

/** Folders with fixed paths that the cluster's programs write to; they see a private one in place of the machine's. */
export const privateFolders = [
  "/run/containerd",
  "/run/netns",
  "/var/lib/cni",
  "/var/lib/kubelet",
  "/var/log/containers",
  "/var/log/pods",
] as const;
