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

/**
 * The variables with which a command of make repeats what this one does on the user's own cluster, as in a shell.
 * Empty for the local cluster. With CONTEXT, the Makefile sets CLUSTER_KUBECONFIG to a copy.
 */
export function givenVariables(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const { CONTEXT, CLUSTER_KUBECONFIG, GIVEN_KUBECONFIG, REGISTRY, IMAGE } = env;
  if (!CLUSTER_KUBECONFIG) return "";
  const kubeconfig = CONTEXT ? GIVEN_KUBECONFIG : CLUSTER_KUBECONFIG;
  return Object.entries({ CONTEXT, CLUSTER_KUBECONFIG: kubeconfig, REGISTRY, IMAGE })
    .flatMap(([name, value]) => (value ? [`${name}=${quoted(value)}`] : []))
    .join(" ");
}

const quoted = (value: string): string => (/^[\w./:@~-]+$/.test(value) ? value : `'${value}'`);

export function clusterKubeconfig(): string {
  return givenKubeconfig ?? layout(stateRoot).kubeconfig;
}
