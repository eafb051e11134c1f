/** Starts the second node for a test and ends it like a power failure, from outside the cluster's namespaces. */
import { readdirSync, readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { cgroup } from "./config-files.ts";
import { layout as layoutOf } from "./layout.ts";
import { clusterNamespace } from "./lifecycle.ts";
import { containerdSocketOf, secondNode } from "./nodes.ts";
import { processesIn } from "./processes.ts";

/** Makes the supervisor start its kubelet and containerd. It can be used when its Node is Ready. */
export async function startSecondNode(root: string): Promise<void> {
  await writeFile(layoutOf(root).secondNode, "");
}

/** Kills the kubelet, containerd and every process in its pods; they do not restart by themselves. */
export async function stopSecondNode(root: string): Promise<void> {
  await rm(layoutOf(root).secondNode, { force: true });
  // Repeated, because processes may start while others are killed.
  for (let left = await nodeProcesses(root); left.length > 0; left = await nodeProcesses(root)) {
    for (const pid of left) kill(pid);
    await Bun.sleep(100);
  }
}

async function nodeProcesses(root: string): Promise<number[]> {
  const namespace = await clusterNamespace(root);
  if (namespace === undefined) return [];
  const marks = new Set([
    `--hostname-override=${secondNode.name}`,
    join(layoutOf(root).config, `containerd${secondNode.suffix}.toml`),
    containerdSocketOf(secondNode),
  ]);
  const programs = processesIn(namespace).filter(({ command }) => command.some((word) => marks.has(word)));
  return [...programs.map(({ pid }) => pid), ...podProcesses()];
}

/** Containers have their own PID namespaces, so they are found by their cgroups. */
function podProcesses(): number[] {
  const group = `/${join(cgroup, secondNode.cgroup)}/`;
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry) && readCgroups(entry).includes(group))
    .map(Number);
}

function readCgroups(entry: string): string {
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
    // It has already ended.
  }
}
