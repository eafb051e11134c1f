/** The cluster of the user's own, if there is one. It is used, but never started or stopped. */
import { homedir } from "node:os";
import { resolve } from "node:path";

import { layout } from "./layout.ts";
import { stateRoot } from "./paths.ts";

const path = process.env["CLUSTER_KUBECONFIG"];

/** The environment variable KUBECONFIG is never read. Not every shell replaces the ~ in an argument of make. */
export const givenKubeconfig = path ? resolve(path.replace(/^~(?=\/)/, homedir())) : undefined;

/** How the user has selected it, for messages. The Makefile writes the kubeconfig of a context. */
export const givenCluster = process.env["CONTEXT"]
  ? `the cluster of context ${process.env["CONTEXT"]}`
  : "the cluster of CLUSTER_KUBECONFIG";

export function clusterKubeconfig(): string {
  return givenKubeconfig ?? layout(stateRoot).kubeconfig;
}
