/** Starting, finding and ending the cluster from the machine's side. */
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { cgroupExists, removeCgroup } from "./cgroup.ts";
import { layout as layoutOf, type Layout } from "./layout.ts";
import { network } from "./network.ts";
import { step } from "./progress.ts";
import { readStatus } from "./status.ts";

const endDeadlineMs = 30_000;

/** The process id of the cluster's supervisor, if it runs. */
export async function runningSupervisor(root: string): Promise<number | undefined> {
  const layout = layoutOf(root);
  if (!existsSync(layout.supervisorPid)) return undefined;
  const pid = Number(await readFile(layout.supervisorPid, "utf8"));
  return isSupervisor(pid, root) ? pid : undefined;
}

/** A process id alone may belong to someone else by now. */
function isSupervisor(pid: number, root: string): boolean {
  try {
    const arguments_ = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    return arguments_.includes("unshare") && arguments_.includes(root);
  } catch {
    return false;
  }
}

export async function startCluster(root: string, archives: readonly string[]): Promise<void> {
  const layout = layoutOf(root);
  await mkdir(root, { recursive: true });
  await rm(layout.status, { force: true });
  await step("starting the cluster", async (progress) => {
    const pid = await launch(layout, archives);
    for (;;) {
      const status = await readStatus(layout);
      if (status?.ready) return;
      if (status) progress.say(status.phase);
      if (!isSupervisor(pid, root)) throw new Error(await explainFailure(layout));
      await Bun.sleep(100);
    }
  });
}

async function launch(layout: Layout, archives: readonly string[]): Promise<number> {
  const log = openSync(join(layout.root, "supervisor.log"), "w");
  const init = [
    "tini",
    "--",
    process.execPath,
    join(import.meta.dir, "main.ts"),
    "supervise",
    layout.root,
    ...archives,
  ];
  // The kernel ends all that runs in a PID namespace with its first process, and `--kill-child` ties that to ours.
  const command = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--propagation", "private", "--mount-proc"];
  const child = Bun.spawn([...command, "--", ...init], { stdin: "ignore", stdout: log, stderr: log, detached: true });
  closeSync(log);
  child.unref();
  await writeFile(layout.supervisorPid, String(child.pid));
  return child.pid;
}

async function explainFailure(layout: Layout): Promise<string> {
  const status = await readStatus(layout);
  return `${status?.error ?? "the supervisor ended without a word"}; its log is ${join(layout.root, "supervisor.log")}, the programs' logs are in ${layout.logs}`;
}

export async function stopCluster(root: string): Promise<void> {
  const pid = await runningSupervisor(root);
  if (pid !== undefined) process.kill(pid, "SIGKILL");
  await waitUntilGone(pid, root);
  await rm(layoutOf(root).supervisorPid, { force: true });
}

/** The kernel takes namespaces apart in its own time; a start right after would stumble over what is left. */
async function waitUntilGone(pid: number | undefined, root: string): Promise<void> {
  const deadline = Date.now() + endDeadlineMs;
  const remains = (): string | false => {
    if (pid !== undefined && isSupervisor(pid, root)) return `process ${pid}`;
    if (existsSync(`/sys/class/net/${network.cable}`)) return `network link ${network.cable}`;
    try {
      removeCgroup();
    } catch {
      // Its processes are still ending.
    }
    return cgroupExists() && "a control group";
  };
  for (let left = remains(); left !== false; left = remains()) {
    if (Date.now() > deadline)
      throw new Error(`the cluster has not ended after ${endDeadlineMs / 1000} s: ${left} is left`);
    await Bun.sleep(50);
  }
}
