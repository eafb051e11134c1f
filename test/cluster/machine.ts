/** What a cluster adds to its machine, read from the kernel. */
import { readdirSync, readFileSync } from "node:fs";

import { network, processesIn, stateRoot } from "@pko/cluster";

interface Remains {
  readonly processes: string[];
  readonly mounts: string[];
  readonly links: string[];
  readonly routes: string[];
  readonly rules: string[];
  readonly cgroups: string[];
}

export function remains(namespace: string): Remains {
  return {
    processes: processesIn(namespace).map(({ command }) => command.join(" ")),
    mounts: readFileSync("/proc/mounts", "utf8")
      .split("\n")
      .filter((line) => line.includes(stateRoot)),
    links: readdirSync("/sys/class/net").filter((name) => name === network.link || name === "cni0"),
    routes: lines(["ip", "route"]).filter((line) => line.startsWith("10.24") || line.startsWith("10.96")),
    rules: lines(["iptables-save"]).filter((line) => line.startsWith("-A")),
    cgroups: lines(["find", "/sys/fs/cgroup", "-maxdepth", "2", "-name", "pko-cluster"]),
  };
}

export const nothing: Remains = { processes: [], mounts: [], links: [], routes: [], rules: [], cgroups: [] };

function lines(command: string[]): string[] {
  const { stdout } = Bun.spawnSync(command);
  return stdout.toString().split("\n").filter(Boolean);
}
