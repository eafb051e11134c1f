/** Processes of the local cluster, which a test may kill: they are this machine's own. */
import { readdirSync, readFileSync } from "node:fs";

import { clusterNamespace, firstNode, processesIn, stateRoot } from "@pko/cluster";

/** Ends the node's kubelet as a crash does; its supervisor starts another. Returns its process. */
export async function killKubelet(): Promise<number> {
  const [kubelet] = await kubelets();
  if (kubelet === undefined) throw new Error("no kubelet runs");
  process.kill(kubelet, "SIGKILL");
  return kubelet;
}

export async function kubelets(): Promise<number[]> {
  const namespace = await clusterNamespace(stateRoot);
  if (namespace === undefined) throw new Error("the local cluster does not run");
  return processesIn(namespace)
    .filter(({ command }) => command[1] === "kubelet" && command.includes(`--hostname-override=${firstNode.name}`))
    .map(({ pid }) => pid);
}

/** Ends the first process of a pod's agent, and with it the container: from inside nobody can. */
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
