/** Starts, finds and stops the cluster from outside its namespaces. */
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import type { Subprocess } from "bun";

import { removeCgroup, vacateRoot } from "./cgroup.ts";
import { layout as layoutOf, type Layout } from "./layout.ts";
import { linkOwner, deleteLink, network } from "./network.ts";
import { processesIn } from "./processes.ts";
import { step, type Step } from "./progress.ts";
import { readStatus } from "./status.ts";

const stopDeadlineMs = 30_000;

/** The PID of the cluster's supervisor, if it is running. */
export async function runningSupervisor(root: string): Promise<number | undefined> {
  const layout = layoutOf(root);
  if (!existsSync(layout.supervisorPid)) return undefined;
  const pid = Number(await readFile(layout.supervisorPid, "utf8"));
  return isSupervisor(pid, root) ? pid : undefined;
}

/** The PID may belong to another process by now. */
function isSupervisor(pid: number, root: string): boolean {
  try {
    const arguments_ = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    return arguments_.includes("unshare") && arguments_.includes(root);
  } catch {
    return false;
  }
}

export async function startCluster(root: string, layouts: readonly string[]): Promise<void> {
  const layout = layoutOf(root);
  await mkdir(root, { recursive: true });
  await rm(layout.status, { force: true });
  await step("starting the cluster", async (progress) => {
    await vacateRoot();
    const supervisor = await launch(layout, layouts);
    const isAlive = async (): Promise<boolean> => supervisor.exitCode === null && supervisor.signalCode === null;
    await followStart(layout, { progress, isAlive });
  });
}

/** Waits for a running cluster, whose start may have been interrupted. */
export async function untilReady(root: string): Promise<void> {
  const layout = layoutOf(root);
  if ((await readStatus(layout))?.ready) return;
  const isAlive = async (): Promise<boolean> => (await runningSupervisor(root)) !== undefined;
  await step("waiting for the cluster to start", async (progress) => {
    await followStart(layout, { progress, isAlive });
  });
}

interface Start {
  readonly progress: Step;
  readonly isAlive: () => Promise<boolean>;
}

async function followStart(layout: Layout, { progress, isAlive }: Start): Promise<void> {
  for (;;) {
    const status = await readStatus(layout);
    if (status?.ready) return;
    if (status) progress.report(status.phase);
    if (!(await isAlive())) throw new Error(await explainFailure(layout));
    await Bun.sleep(100);
  }
}

async function launch(layout: Layout, layouts: readonly string[]): Promise<Subprocess> {
  const log = openSync(layout.supervisorLog, "w");
  const init = ["tini", "--", process.execPath, join(import.meta.dir, "main.ts"), "supervise", layout.root, ...layouts];
  // The kernel kills all processes of a PID namespace with its first one, which `--kill-child` kills with ours.
  const command = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--propagation", "private", "--mount-proc"];
  const child = Bun.spawn([...command, "--", ...init], { stdin: "ignore", stdout: log, stderr: log, detached: true });
  closeSync(log);
  child.unref();
  await writeFile(layout.supervisorPid, String(child.pid));
  return child;
}

async function explainFailure(layout: Layout): Promise<string> {
  const status = await readStatus(layout);
  return `${status?.error ?? "the supervisor ended without an error message"}; its log is ${layout.supervisorLog}, the programs' logs are in ${layout.logs}`;
}

export async function stopCluster(root: string): Promise<void> {
  const pid = await runningSupervisor(root);
  if (pid !== undefined) process.kill(pid, "SIGKILL");
  // Without a namespace, no cluster was started from this folder: a cluster that runs on the machine is not ours.
  for (const namespace of [await clusterNamespace(root), killedLinkOwner()])
    if (namespace !== undefined) await waitUntilGone(namespace);
  const { supervisorPid, pidNamespace } = layoutOf(root);
  for (const file of [supervisorPid, pidNamespace]) await rm(file, { force: true });
}

/** The PID namespace that identifies the cluster's processes, even after the supervisor has died. */
export async function clusterNamespace(root: string): Promise<string | undefined> {
  return await readFile(layoutOf(root).pidNamespace, "utf8").catch(() => undefined);
}

/** The cluster of any clone that left the link behind: all its processes were killed, and its folder may be deleted. */
function killedLinkOwner(): string | undefined {
  const owner = linkOwner();
  return owner === undefined || owner === "" || processesIn(owner).length > 0 ? undefined : owner;
}

/** The kernel removes namespaces asynchronously, and the remains would break an immediate restart. */
async function waitUntilGone(namespace: string): Promise<void> {
  const deadline = Date.now() + stopDeadlineMs;
  for (let left = await findRemains(namespace); left !== undefined; left = await findRemains(namespace)) {
    if (Date.now() > deadline)
      throw new Error(`the cluster did not stop within ${stopDeadlineMs / 1000} s: ${left} is left`);
    await Bun.sleep(50);
  }
}

async function findRemains(namespace: string): Promise<string | undefined> {
  const [process] = processesIn(namespace);
  if (process !== undefined) return `process ${process.pid}`;
  if (linkOwner() === namespace) await deleteLink();
  const owner = linkOwner();
  if (owner === namespace || owner === "") return `the network link ${network.link}`;
  // It belongs to another clone's cluster, and so does the cgroup.
  if (owner !== undefined) return undefined;
  return removeCgroup() ? undefined : "a cgroup";
}
