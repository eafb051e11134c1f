/** kubectl and helm for the cluster: the user's own programs on the user's own cluster, otherwise built from source. */
import { clusterKubeconfig, givenKubeconfig } from "./given-cluster.ts";
import { isOnPath } from "./shell.ts";
import { buildTools, toolPath } from "./tools.ts";

type ClientName = "kubectl" | "helm";

const tools = { kubectl: "kube", helm: "helm" } as const;

export function kubectlCommand(...args: readonly string[]): string[] {
  return [...program("kubectl"), `--kubeconfig=${clusterKubeconfig()}`, ...args];
}

export function helmCommand(...args: readonly string[]): string[] {
  return [...program("helm"), `--kubeconfig=${clusterKubeconfig()}`, ...args];
}

/** The path of kubectl, and the words that select it in a binary of several programs. */
export function kubectlProgram(): string[] {
  const [name = "", ...rest] = program("kubectl");
  return [Bun.which(name) ?? name, ...rest];
}

/** Builds those that the user does not have. */
export async function ensureClients(...names: readonly ClientName[]): Promise<void> {
  await buildTools(names.filter((name) => !isUsersOwn(name)).map((name) => tools[name]));
}

function program(name: ClientName): string[] {
  if (isUsersOwn(name)) return [name];
  return name === "kubectl" ? [toolPath("kube"), "kubectl"] : [toolPath("helm")];
}

function isUsersOwn(name: ClientName): boolean {
  return givenKubeconfig !== undefined && isOnPath(name);
}
