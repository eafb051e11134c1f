/** The cgroup that contains all pods of the cluster, on machines with cgroups v1 or v2. */
import { existsSync, readdirSync, rmdirSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { cgroup } from "./config-files.ts";
import { allNodes } from "./nodes.ts";

const mountPoint = "/sys/fs/cgroup";
const unified = existsSync(join(mountPoint, "cgroup.controllers"));

export async function createCgroup(): Promise<void> {
  const groups = allNodes.map((node) => join(cgroup, node.cgroup));
  for (const hierarchy of hierarchies()) {
    for (const group of groups) await mkdir(join(hierarchy, group), { recursive: true });
  }
  if (unified) await enableControllers(groups);
  await setCpuWeight();
}

async function enableControllers(groups: readonly string[]): Promise<void> {
  const controllers = (await readFile(join(mountPoint, "cgroup.controllers"), "utf8")).trim().split(" ");
  const enable = controllers.map((name) => `+${name}`).join(" ");
  for (const group of [mountPoint, ...groups.map((name) => join(mountPoint, name))])
    await writeFile(join(group, "cgroup.subtree_control"), enable);
}

/** All pods together have the weight of eight processes: with the weight of one, they would starve next to the tests. */
async function setCpuWeight(): Promise<void> {
  const [file, weight] = unified
    ? [join(mountPoint, cgroup, "cpu.weight"), 8 * 100]
    : [join(mountPoint, "cpu", cgroup, "cpu.shares"), 8 * 1024];
  if (existsSync(file)) await writeFile(file, String(weight));
}

/** False while the kernel rejects it because a process in the cgroup is still ending. */
export function removeCgroup(): boolean {
  try {
    for (const hierarchy of hierarchies()) removeTree(join(hierarchy, cgroup));
    return true;
  } catch {
    return false;
  }
}

function hierarchies(): string[] {
  if (unified) return [mountPoint];
  return readdirSync(mountPoint, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(mountPoint, entry.name));
}

function removeTree(folder: string): void {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(join(folder, entry.name));
  }
  rmdirSync(folder);
}
