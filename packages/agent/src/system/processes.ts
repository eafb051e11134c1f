/**
 * What /proc tells of processes. A run's CLI leads a session of its own; Pulumi gives its plugins process groups of
 * their own, so the session, not the group, is what holds a run together.
 */
import { readdirSync, readFileSync } from "node:fs";

interface Stat {
  readonly state: string;
  readonly parent: number;
  readonly session: number;
  readonly startTicks: string;
}

/** A process is the one that was meant only if it began when that one did: numbers are used again. */
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

/** Children of a process that have ended, and that it has not seen off. */
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

export function signalSession(session: number, signal: NodeJS.Signals): void {
  for (const pid of sessionMembers(session)) signalProcess(pid, signal);
}

export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended in the meantime.
  }
}

function readStat(pid: number): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command's name, in parentheses, may hold anything: what follows the last one counts.
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
