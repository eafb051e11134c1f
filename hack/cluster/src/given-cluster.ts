/** The cluster of the user's own, if there is one. It is used, but never started or stopped. */
import { layout } from "./layout.ts";
import { stateRoot } from "./paths.ts";

/** The environment variable KUBECONFIG is never read. */
export const givenKubeconfig = process.env["CLUSTER_KUBECONFIG"] || undefined;

export function clusterKubeconfig(): string {
  return givenKubeconfig ?? layout(stateRoot).kubeconfig;
}
