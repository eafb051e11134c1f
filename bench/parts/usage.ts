/** What a process of this machine uses. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export interface Usage {
  readonly residentMb: number;
  /** Without pages of files, such as the executable, which the kernel can drop. */
  readonly anonymousMb: number;
  /** The most that was resident since it started. */
  readonly peakMb: number;
  readonly cpuMs: number;
}

export interface Handles {
  readonly threads: number;
  /** Open file descriptors, sockets included. */
  readonly files: number;
  readonly sockets: number;
  /** Child processes, zombies included. */
  readonly children: number;
}

const ticksPerSecond = 100;

export function processUsage(pid: number): Usage {
  const mb = (field: string): number => statusField(pid, field) / 1000;
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13)
    .map(Number);
  return {
    residentMb: mb("VmRSS"),
    anonymousMb: mb("RssAnon"),
    peakMb: mb("VmHWM"),
    cpuMs: ((user + system) * 1000) / ticksPerSecond,
  };
}

export function processHandles(pid: number): Handles {
  const files = readdirSync(`/proc/${pid}/fd`);
  return {
    threads: statusField(pid, "Threads"),
    files: files.length,
    sockets: files.filter((file) => isSocket(`/proc/${pid}/fd/${file}`)).length,
    children: readdirSync("/proc").filter((other) => /^\d+$/.test(other) && parentOf(other) === pid).length,
  };
}

/** A file may be closed before it is examined. */
function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith("socket:");
  } catch {
    return false;
  }
}

/** Of a process that may have ended. */
function parentOf(pid: string): number | undefined {
  try {
    return statusField(Number(pid), "PPid");
  } catch {
    return undefined;
  }
}

function statusField(pid: number, field: string): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(status)?.[1]);
}
