/** The second node, from the machine's side: started for a test, and ended as a power failure ends a node. */
import { readdirSync, readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { cgroup } from "./config-files.ts";
import { layout as layoutOf } from "./layout.ts";
import { clusterNamespace } from "./lifecycle.ts";
import { containerdSocketOf, secondNode } from "./nodes.ts";
import { processesIn } from "./processes.ts";

/** The supervisor starts its kubelet and containerd; it is there when the API server says that it is Ready. */
export async function startSecondNode(root: string): Promise<void> {
  await writeFile(layoutOf(root).secondNode, "");
}

/** Kubelet, containerd, and everything in its pods; for good, until it is started again. */
export async function stopSecondNode(root: string): Promise<void> {
  await rm(layoutOf(root).secondNode, { force: true });
  // What is killed last may have been started while the first were.
  for (let left = await processesOf(root); left.length > 0; left = await processesOf(root)) {
    for (const pid of left) kill(pid);
    await Bun.sleep(100);
  }
}

async function processesOf(root: string): Promise<number[]> {
  const namespace = await clusterNamespace(root);
  if (namespace === undefined) return [];
  const marks = new Set([
    `--hostname-override=${secondNode.name}`,
    join(layoutOf(root).config, `containerd${secondNode.suffix}.toml`),
    containerdSocketOf(secondNode),
  ]);
  const programs = processesIn(namespace).filter(({ command }) => command.some((word) => marks.has(word)));
  return [...programs.map(({ pid }) => pid), ...inItsPods()];
}

/** Containers have PID namespaces of their own; their control groups tell whose they are. */
function inItsPods(): number[] {
  const group = `/${join(cgroup, secondNode.cgroup)}/`;
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry) && cgroupsOf(entry).includes(group))
    .map(Number);
}

function cgroupsOf(entry: string): string {
  try {
    return readFileSync(`/proc/${entry}/cgroup`, "utf8");
  } catch {
    return "";
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}
