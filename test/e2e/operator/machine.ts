/** Processes of the local cluster that a test can kill, because they run on this machine. */
import { readdirSync, readFileSync } from "node:fs";

import { clusterNamespace, firstNode, processesIn, stateRoot } from "@pko/cluster";

/** Kills the kubelet, which its supervisor then restarts. Returns the old process ID. */
export async function killKubelet(): Promise<number> {
  const [kubelet] = await kubelets();
  if (kubelet === undefined) throw new Error("no kubelet is running");
  process.kill(kubelet, "SIGKILL");
  return kubelet;
}

export async function kubelets(): Promise<number[]> {
  const namespace = await clusterNamespace(stateRoot);
  if (namespace === undefined) throw new Error("the local cluster is not running");
  return processesIn(namespace)
    .filter(({ command }) => command[1] === "kubelet" && command.includes(`--hostname-override=${firstNode.name}`))
    .map(({ pid }) => pid);
}

/** Kills the agent, which is the container's first process and so cannot be killed from inside the container. */
export function killAgent(podUid: string): void {
  const agents = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry) && isAgentOf(entry, podUid));
  if (agents.length !== 1) throw new Error(`${agents.length} agents run in the pod ${podUid}`);
  process.kill(Number(agents[0]), "SIGKILL");
}

function isAgentOf(entry: string, podUid: string): boolean {
  try {
    const [command] = readFileSync(`/proc/${entry}/cmdline`, "utf8").split("\0");
    return command === "/share/agent-bin" && readFileSync(`/proc/${entry}/cgroup`, "utf8").includes(podUid);
  } catch {
    return false;
  }
}
