/** kubectl on the demo's cluster. */
import { clusterKubeconfig, run, toolPath } from "@pko/cluster";

export function kubectlCommand(...args: string[]): string[] {
  return [toolPath("kube"), "kubectl", `--kubeconfig=${clusterKubeconfig()}`, ...args];
}

export async function kubectl(args: readonly string[], input?: string): Promise<string> {
  return await run(kubectlCommand(...args), input === undefined ? {} : { input });
}
