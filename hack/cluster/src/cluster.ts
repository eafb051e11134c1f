/** The cluster that everything here uses: the local one, or the user's own. */
import { existsSync } from "node:fs";

import { ensureClients, kubectlCommand } from "./clients.ts";
import { givenCluster, givenKubeconfig } from "./given-cluster.ts";
import { buildImages, imagesLayout, imageTools } from "./images.ts";
import { runningSupervisor, startCluster, stopCluster, untilReady } from "./lifecycle.ts";
import { isDnsReady } from "./network.ts";
import { stateRoot } from "./paths.ts";
import { findProblems, inspectMachine, installPackages, missingPackages } from "./prerequisites.ts";
import { attempt, isOnPath } from "./shell.ts";
import { together } from "./together.ts";
import { buildTools, clusterTools, startTools, toolPath } from "./tools.ts";
import { until } from "./until.ts";
import { UserError } from "./user-error.ts";
import { userShellSetup } from "./user-shell.ts";

/** Without DNS it starts faster, which is enough for pods that use IP addresses; a later call adds DNS. */
export async function clusterUp({ dns }: { readonly dns: boolean }): Promise<void> {
  if (givenKubeconfig !== undefined) return await checkGivenCluster(givenKubeconfig);
  if ((await runningSupervisor(stateRoot)) !== undefined) {
    await untilReady(stateRoot);
    if (dns) await addDns();
    return await announce("is already running");
  }
  const started = performance.now();
  // The remains of a killed run, which the kernel is still removing, would look like another cluster.
  await stopCluster(stateRoot);
  await startCluster(stateRoot, [await prepareCluster({ dns })]);
  await announce(`is ready after ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

/** Everything that takes minutes the first time. Returns the OCI layout with the images. */
export async function prepareCluster({ dns }: { readonly dns: boolean }): Promise<string> {
  const missing = await checkMachine();
  const abort = new AbortController();
  const programs = installPackages(missing);
  // The tools of the images first: the images are built while the others are compiled.
  const names = new Set([...imageTools, ...clusterTools, ...(dns ? ["coredns" as const] : [])]);
  const tools = startTools([...names], abort.signal);
  const images = buildImages({ programs, tools: Promise.all(imageTools.flatMap((name) => tools.get(name) ?? [])) });
  await together(abort, [programs, ...tools.values(), images]);
  return await images;
}

/** The supervisor starts CoreDNS when its executable exists. */
async function addDns(): Promise<void> {
  await buildTools(["coredns"]);
  await until("DNS to be ready", isDnsReady);
}

export async function clusterDown(): Promise<void> {
  if (givenKubeconfig !== undefined) return console.error(`${givenCluster} is your own: it is not stopped`);
  await stopCluster(stateRoot);
  console.error("the cluster is stopped; none of its processes is left");
}

/** Installs the programs that tests need without a cluster. */
export async function ensurePackages(): Promise<void> {
  const missing = missingPackages();
  if (missing.length === 0) return;
  const install = `install ${missing.join(", ")}`;
  if (!isOnPath("apt-get")) throw new UserError([`programs are missing and there is no apt-get: ${install}`]);
  if (process.getuid?.() !== 0)
    throw new UserError([`programs are missing and only root can install them: ${install}`]);
  await installPackages(missing);
}

/** Returns the missing Debian packages. */
async function checkMachine(): Promise<readonly string[]> {
  const tools = clusterTools.every((name) => existsSync(toolPath(name)));
  const machine = await inspectMachine({ tools, images: existsSync(imagesLayout()) });
  const problems = findProblems(machine);
  if (problems.length > 0) throw new UserError(problems);
  return machine.missingPackages;
}

async function checkGivenCluster(path: string): Promise<void> {
  if (!existsSync(path)) throw new UserError([`CLUSTER_KUBECONFIG is ${path}, which does not exist`]);
  await ensureClients("kubectl");
  const { code, stderr } = await attempt(kubectlCommand("get", "--raw", "/readyz"));
  if (code !== 0) throw new UserError([`${givenCluster} does not respond: ${stderr.trim()}`]);
  console.error(`using ${givenCluster}; no local cluster is started`);
}

async function announce(state: string): Promise<void> {
  console.error(`the cluster ${state}; to use it:`);
  console.error(`  ${await userShellSetup()}`);
}
