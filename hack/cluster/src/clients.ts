/** kubectl and helm for the cluster: the user's own programs on the user's own cluster, otherwise built from source. */
import { existsSync } from "node:fs";

import { clusterKubeconfig, givenKubeconfig } from "./given-cluster.ts";
import { isOnPath } from "./shell.ts";
import { buildTools, toolPath } from "./tools.ts";
import { UserError } from "./user-error.ts";

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
  const others = names.filter((name) => !isUsersOwn(name));
  const missing = others.filter((name) => !existsSync(toolPath(tools[name])));
  // The local cluster reports this itself.
  if (missing.length > 0 && givenKubeconfig !== undefined && !isOnPath("go")) {
    throw new UserError(missing.map((name) => `${name} is missing: install it, or Go 1.26 to build it`));
  }
  await buildTools(others.map((name) => tools[name]));
}

function program(name: ClientName): string[] {
  if (isUsersOwn(name)) return [name];
  return name === "kubectl" ? [toolPath("kube"), "kubectl"] : [toolPath("helm")];
}

function isUsersOwn(name: ClientName): boolean {
  return givenKubeconfig !== undefined && isOnPath(name);
}
