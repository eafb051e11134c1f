/** The cgroup that contains all pods of the cluster, on machines with cgroups v1 or v2. */
import { existsSync, readdirSync, rmdirSync } from "node:fs";
import { appendFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { cgroup } from "./config-files.ts";
import { allNodes } from "./nodes.ts";

const mountPoint = "/sys/fs/cgroup";
/** For the processes of a container that were in the root. */
const leaf = "init";

const isUnified = (mount: string): boolean => existsSync(join(mount, "cgroup.controllers"));

/**
 * Moves the processes of a container with its own cgroup namespace out of the root of its mount. For the kernel, that is a
 * cgroup like any other, in which it enables controllers only if no process is in it (otherwise EBUSY). Call this outside of
 * the cluster's PID namespace: inside, `cgroup.procs` shows 0 for each of these processes.
 */
export async function vacateRoot(mount = mountPoint): Promise<void> {
  // Cgroups v1 do not have this file, nor does the root cgroup of a machine, which may contain processes.
  if (!existsSync(join(mount, "cgroup.type"))) return;
  const moved = new Set<string>();
  for (;;) {
    // Repeated, because a process that has not moved yet may start others.
    const found = (await readPids(mount)).filter((pid) => !moved.has(pid));
    if (found.length === 0) return;
    await mkdir(join(mount, leaf), { recursive: true });
    for (const pid of found) await moveToLeaf(mount, pid);
    for (const pid of found) moved.add(pid);
  }
}

async function readPids(mount: string): Promise<string[]> {
  return (await readFile(join(mount, "cgroup.procs"), "utf8")).split("\n").filter(Boolean);
}

async function moveToLeaf(mount: string, pid: string): Promise<void> {
  try {
    await appendFile(join(mount, leaf, "cgroup.procs"), `${pid}\n`);
  } catch (error) {
    // It has ended.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

export async function createCgroup(mount = mountPoint): Promise<void> {
  const groups = allNodes.map((node) => join(cgroup, node.cgroup));
  for (const hierarchy of hierarchies(mount)) {
    for (const group of groups) await mkdir(join(hierarchy, group), { recursive: true });
  }
  if (isUnified(mount)) await enableControllers(mount, groups);
  await setCpuWeight(mount);
}

async function enableControllers(mount: string, groups: readonly string[]): Promise<void> {
  const controllers = (await readFile(join(mount, "cgroup.controllers"), "utf8")).trim().split(" ");
  const enable = controllers.map((name) => `+${name}`).join(" ");
  for (const group of [mount, ...groups.map((name) => join(mount, name))])
    await writeFile(join(group, "cgroup.subtree_control"), enable);
}

/**
 * All pods together have the weight of eight processes: with the weight of one, they would starve next to the tests. In a
 * container, the tests are in a cgroup, too. It has the same weight, or the tests would starve.
 */
async function setCpuWeight(mount: string): Promise<void> {
  const [files, weight] = isUnified(mount)
    ? [[cgroup, leaf].map((group) => join(mount, group, "cpu.weight")), 8 * 100]
    : [[join(mount, "cpu", cgroup, "cpu.shares")], 8 * 1024];
  for (const file of files) if (existsSync(file)) await writeFile(file, String(weight));
}

/** False while the kernel rejects it because a process in the cgroup is still ending. */
export function removeCgroup(): boolean {
  try {
    for (const hierarchy of hierarchies(mountPoint)) removeTree(join(hierarchy, cgroup));
    return true;
  } catch {
    return false;
  }
}

function hierarchies(mount: string): string[] {
  if (isUnified(mount)) return [mount];
  return readdirSync(mount, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(mount, entry.name));
}

function removeTree(folder: string): void {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(join(folder, entry.name));
  }
  rmdirSync(folder);
}
