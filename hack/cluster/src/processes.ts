/** The machine's processes, from /proc. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

interface Process {
  readonly pid: number;
  readonly command: readonly string[];
}

export function ownPidNamespace(): string {
  return readlinkSync("/proc/self/ns/pid");
}

/** The processes in one PID namespace, without those in containers, which have nested namespaces. */
export function processesIn(namespace: string): Process[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry) && ignoreEnded(() => readlinkSync(`/proc/${entry}/ns/pid`)) === namespace)
    .map((entry) => ({ pid: Number(entry), command: readCommand(entry) }));
}

function readCommand(entry: string): string[] {
  return (ignoreEnded(() => readFileSync(`/proc/${entry}/cmdline`, "utf8")) ?? "").split("\0").filter(Boolean);
}

/** A process may end after it was listed. */
function ignoreEnded<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
