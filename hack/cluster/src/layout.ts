/** The state folder of a cluster. Everything except the image store is recreated at each start. */
import { join } from "node:path";

export interface Layout {
  readonly root: string;
  readonly pki: string;
  readonly kubeconfigs: string;
  /** The admin's kubeconfig, whose path `make -s kubeconfig` prints. */
  readonly kubeconfig: string;
  readonly config: string;
  readonly logs: string;
  readonly etcd: string;
  readonly volumes: string;
  /** Replaces the machine's folders in the cluster's mount namespace. */
  readonly volatile: string;
  /** Images are kept between starts: unpacking them would take most of the time of a start. */
  readonly containerd: string;
  /** The image store of the second node, recreated at each start. */
  readonly secondContainerd: string;
  /** The second node runs while this file exists. */
  readonly secondNode: string;
  /** OCI layouts published to the running cluster. */
  readonly images: string;
  readonly status: string;
  readonly supervisorPid: string;
  readonly supervisorLog: string;
  /** Contains the PID namespace of the last start, which identifies the cluster's processes. */
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

/** Folders with fixed paths that the cluster's programs write to; each is replaced by a private folder. */
export const privateFolders = [
  "/run/containerd",
  "/run/netns",
  "/var/lib/cni",
  "/var/lib/kubelet",
  "/var/log/containers",
  "/var/log/pods",
] as const;

/** What replaces it, and where its files are for other processes of this machine. */
export const privateFolder = (layout: Layout, folder: (typeof privateFolders)[number]): string =>
  join(layout.volatile, folder.slice(1).replaceAll("/", "-"));
