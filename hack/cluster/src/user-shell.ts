/** `kubectl` and `kubectl pulumi` in the user's shell, for this cluster: nothing has to be built or installed. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { kubectlProgram, scriptsFolder as folder } from "./clients.ts";
import { clusterKubeconfig } from "./given-cluster.ts";
import { repositoryRoot } from "./paths.ts";

/** The command that sets up the shell. Not an alias: kubectl accepts no option before the name of a plugin. */
export async function userShellSetup(): Promise<string> {
  await mkdir(folder, { recursive: true });
  await writeScript("kubectl", [kubectlProgram()]);
  await writeScript("kubectl-pulumi", [process.execPath, join(repositoryRoot, "packages/cli/src/main.ts")]);
  return `export KUBECONFIG="${clusterKubeconfig()}" PATH="${folder}:$PATH"`;
}

async function writeScript(name: string, command: readonly string[]): Promise<void> {
  const words = command.map((word) => `"${word}"`).join(" ");
  await writeFile(join(folder, name), `#!/bin/sh\nexec ${words} "$@"\n`, { mode: 0o755 });
}
