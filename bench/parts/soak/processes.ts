/** Child processes with grandchildren, each in its own process group, killed as a group and reaped. */
import { readdirSync, readFileSync } from "node:fs";

import type { Load } from "./load.ts";

export function processChurn(end: AbortSignal): Load {
  const counts = { started: 0, reaped: 0 };
  const groups: number[] = [];
  const churn = async (): Promise<void> => {
    while (!end.aborted) {
      const child = Bun.spawn(["sh", "-c", "sleep 1000 & echo started; sleep 1000"], {
        detached: true,
        stdout: "pipe",
      });
      counts.started++;
      groups.push(child.pid);
      // The grandchild exists when the shell has printed.
      await child.stdout.getReader().read();
      process.kill(-child.pid, "SIGKILL");
      await child.exited;
      counts.reaped++;
      await Bun.sleep(1000);
    }
  };
  return {
    done: churn(),
    summary: () => `processes: ${counts.reaped}/${counts.started} reaped`,
    faults: () => survivors(new Set(groups)).map((pid) => `process ${pid} survived the kill of its group`),
  };
}

/** Processes, including zombies, that still belong to one of the groups. */
function survivors(groups: ReadonlySet<number>): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => groups.has(processGroup(pid)));
}

function processGroup(pid: string): number {
  try {
    // The command name is in parentheses and may contain spaces; the group is the third field after it.
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2]);
  } catch {
    return -1;
  }
}
