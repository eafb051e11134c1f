/** kubectl and helm for the cluster: the user's own programs on the user's own cluster, otherwise built from source. */
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

import { clusterKubeconfig, givenKubeconfig } from "./given-cluster.ts";
import { repositoryRoot } from "./paths.ts";
import { isOnPath } from "./shell.ts";
import { buildTools, toolPath } from "./tools.ts";
import { UserError } from "./user-error.ts";

type ClientName = "kubectl" | "helm";

/** Scripts for the user's shell, which call these programs. */
export const scriptsFolder = join(repositoryRoot, ".build/bin");

export function kubectlCommand(...args: readonly string[]): string[] {
  return [program("kubectl"), `--kubeconfig=${clusterKubeconfig()}`, ...args];
}

export function helmCommand(...args: readonly string[]): string[] {
  return [program("helm"), `--kubeconfig=${clusterKubeconfig()}`, ...args];
}

export const kubectlProgram = (): string => program("kubectl");

/** Builds those that the user does not have. */
export async function ensureClients(...names: readonly ClientName[]): Promise<void> {
  const others = names.filter((name) => !isUsersOwn(name));
  const missing = others.filter((name) => !existsSync(toolPath(name)));
  // The local cluster reports this itself.
  if (missing.length > 0 && givenKubeconfig !== undefined && !isOnPath("go")) {
    throw new UserError(missing.map((name) => `${name} is missing: install it, or Go 1.26 to build it`));
  }
  await buildTools(others);
}

const program = (name: ClientName): string => usersOwn(name) ?? toolPath(name);

export const isUsersOwn = (name: ClientName): boolean => usersOwn(name) !== undefined;

/** Its path. A script in the shell that an earlier demo has set up does not count: it would call itself. */
function usersOwn(name: ClientName): string | undefined {
  if (givenKubeconfig === undefined) return undefined;
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== scriptsFolder);
  return Bun.which(name, { PATH: folders.join(delimiter) }) ?? undefined;
}
