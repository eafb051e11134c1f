/**
 * Processes as /proc shows them. A run's CLI is the leader of a session. All processes of the run belong to that session,
 * but not to one process group, because Pulumi puts its plugins into separate groups.
 */
import { readdirSync, readFileSync } from "node:fs";

interface Stat {
  readonly state: string;
  readonly parent: number;
  readonly session: number;
  readonly startTicks: string;
}

/** The kernel reuses PIDs, so the start time is part of a process's identity. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTicks: string;
}

export function identify(pid: number): ProcessIdentity | undefined {
  const stat = readStat(pid);
  return stat ? { pid, startTicks: stat.startTicks } : undefined;
}

export function isAlive(identity: ProcessIdentity): boolean {
  const stat = readStat(identity.pid);
  return stat !== undefined && stat.startTicks === identity.startTicks && stat.state !== "Z";
}

export function sessionMembers(session: number): number[] {
  return allProcesses().filter((pid) => {
    const stat = readStat(pid);
    return stat?.session === session && stat.state !== "Z";
  });
}

/** Zombies: children that have exited and that the parent has not reaped. */
export function endedChildren(parent: number): ProcessIdentity[] {
  return allProcesses().flatMap((pid) => {
    const stat = readStat(pid);
    return stat?.parent === parent && stat.state === "Z" ? [{ pid, startTicks: stat.startTicks }] : [];
  });
}

function allProcesses(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** More than any command needs, but a session that starts processes faster than they are killed must not block the agent. */
const maxKillRounds = 20;

/** A process may start another one after the members are listed and before it is killed. Once it is killed, it starts none. */
export function killSession(session: number): void {
  const killed = new Set<number>();
  for (let round = 0; round < maxKillRounds; round += 1) {
    const found = sessionMembers(session).filter((pid) => !killed.has(pid));
    if (found.length === 0) return;
    for (const pid of found) {
      signalProcess(pid, "SIGKILL");
      killed.add(pid);
    }
  }
}

export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has exited.
  }
}

function readStat(pid: number): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command's name is in parentheses and may contain any character: read after the last parenthesis.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return {
      state: fields[0] ?? "",
      parent: Number(fields[1]),
      session: Number(fields[3]),
      startTicks: fields[19] ?? "",
    };
  } catch {
    return undefined;
  }
}
