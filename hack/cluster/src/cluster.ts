/** The cluster that everything here runs on: the local one, or the one that the user names. */
import { existsSync } from "node:fs";

import { buildImages, imagesLayout } from "./images.ts";
import { layout } from "./layout.ts";
import { runningSupervisor, startCluster, stopCluster, untilReady } from "./lifecycle.ts";
import { dnsAnswers } from "./network.ts";
import { stateRoot } from "./paths.ts";
import { findProblems, inspectMachine, installPackages, missingPackages } from "./prerequisites.ts";
import { attempt, isOnPath } from "./shell.ts";
import { buildTools, clusterTools, toolPath } from "./tools.ts";
import { until } from "./until.ts";

/** A cluster that the user names is theirs: it is used, never started or ended. The ambient KUBECONFIG is never read. */
export const givenKubeconfig = process.env["CLUSTER_KUBECONFIG"];

export function clusterKubeconfig(): string {
  return givenKubeconfig ?? layout(stateRoot).kubeconfig;
}

/** Without DNS it is there sooner, and enough for pods that call each other by address; a later call adds DNS. */
export async function clusterUp({ dns }: { readonly dns: boolean }): Promise<void> {
  if (givenKubeconfig !== undefined) return await checkGivenCluster(givenKubeconfig);
  if ((await runningSupervisor(stateRoot)) !== undefined) {
    await untilReady(stateRoot);
    if (dns) await addDns();
    return announce("is running already");
  }
  const started = performance.now();
  // What the kernel still takes apart of a killed run would pass for another cluster.
  await stopCluster(stateRoot);
  await startCluster(stateRoot, [await prepareCluster({ dns })]);
  announce(`is ready after ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

/** All that takes minutes the first time. Returns the OCI layout with the images. */
export async function prepareCluster({ dns }: { readonly dns: boolean }): Promise<string> {
  await checkMachine();
  await buildTools([...clusterTools, ...(dns ? ["coredns" as const] : [])]);
  return await buildImages();
}

/** The cluster waits for the program; it is there in a running one, unless that was started without. */
async function addDns(): Promise<void> {
  await buildTools(["coredns"]);
  await until("DNS to be ready", dnsAnswers);
}

export async function clusterDown(): Promise<void> {
  if (givenKubeconfig !== undefined) return console.error("CLUSTER_KUBECONFIG names a cluster that is not ours to end");
  await stopCluster(stateRoot);
  console.error("the cluster has ended; nothing of it runs");
}

/** The programs that tests call, without a cluster. */
export async function ensurePackages(): Promise<void> {
  const missing = missingPackages();
  if (missing.length === 0) return;
  const install = `install ${missing.join(", ")}`;
  if (!isOnPath("apt-get")) throw new UserError([`missing programs, and no apt-get to install them with: ${install}`]);
  if (process.getuid?.() !== 0) throw new UserError([`missing programs, and only root may install them: ${install}`]);
  await installPackages(missing);
}

async function checkMachine(): Promise<void> {
  const tools = clusterTools.every((name) => existsSync(toolPath(name)));
  const machine = await inspectMachine({ tools, images: existsSync(imagesLayout()) });
  const problems = findProblems(machine);
  if (problems.length > 0) throw new UserError(problems);
  await installPackages(machine.missingPackages);
}

async function checkGivenCluster(path: string): Promise<void> {
  if (!existsSync(path)) throw new UserError([`CLUSTER_KUBECONFIG names ${path}, which does not exist`]);
  await buildTools(["kube"]);
  const { code, stderr } = await attempt([
    toolPath("kube"),
    "kubectl",
    `--kubeconfig=${path}`,
    "get",
    "--raw",
    "/readyz",
  ]);
  if (code !== 0) throw new UserError([`the cluster of CLUSTER_KUBECONFIG does not answer: ${stderr.trim()}`]);
  console.error("using the cluster that CLUSTER_KUBECONFIG names; none is started");
}

function announce(state: string): void {
  console.error(`the cluster ${state}; to look at it:`);
  console.error(`  alias kubectl="${toolPath("kube")} kubectl --kubeconfig=${clusterKubeconfig()}"`);
}

/** Something that the user can mend, a line for each. */
export class UserError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.name = "UserError";
    this.problems = problems;
  }
}
