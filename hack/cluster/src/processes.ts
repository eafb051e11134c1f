/** The machine's processes, as the kernel shows them. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

interface Process {
  readonly pid: number;
  readonly command: readonly string[];
}

export function ownPidNamespace(): string {
  return readlinkSync("/proc/self/ns/pid");
}

/** Those of one PID namespace. Containers have namespaces of their own below it. */
export function processesIn(namespace: string): Process[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry) && unlessGone(() => readlinkSync(`/proc/${entry}/ns/pid`)) === namespace)
    .map((entry) => ({ pid: Number(entry), command: commandOf(entry) }));
}

function commandOf(entry: string): string[] {
  return (unlessGone(() => readFileSync(`/proc/${entry}/cmdline`, "utf8")) ?? "").split("\0").filter(Boolean);
}

/** A process may end between being listed and being read. */
function unlessGone<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
