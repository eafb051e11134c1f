/**
 * PID 1 of a container inherits orphaned processes and must reap them when they exit; otherwise zombies fill the process
 * table. Pulumi's plugins and package managers leave orphans in every run.
 *
 * The only module that needs `bun:ffi`, because neither Bun nor `node:` offers waitpid.
 */
import { dlopen } from "bun:ffi";
import type { ChildProcess } from "node:child_process";
import { endedChildren, type ProcessIdentity } from "./processes.ts";

/** Children that Bun itself reaps and whose exit it has not reported yet. */
const bunChildren = new Set<number>();

/** Call this for every process that the agent starts. */
export function trackChild<T extends Pick<ChildProcess, "pid" | "once">>(child: T): T {
  const { pid } = child;
  if (pid === undefined) return child;
  bunChildren.add(pid);
  child.once("exit", () => bunChildren.delete(pid));
  return child;
}

const reapIntervalMs = 15_000;

/** Reaps orphans periodically for the lifetime of the process. Does nothing if libc is not found. */
export function reapOrphans(intervalMs = reapIntervalMs): void {
  const waitFor = openWait();
  if (!waitFor) return;
  let before: readonly ProcessIdentity[] = [];
  const reap = (): void => {
    const ended = endedChildren(process.pid).filter(({ pid }) => !bunChildren.has(pid));
    for (const orphan of ended) {
      // Only a zombie seen twice: a new one may be a child that Bun started itself and is about to reap.
      if (before.some(({ pid, startTicks }) => pid === orphan.pid && startTicks === orphan.startTicks)) {
        waitFor(orphan.pid);
      }
    }
    before = ended;
  };
  setInterval(reap, intervalMs).unref();
}

const symbols = { waitpid: { args: ["i32", "ptr", "i32"], returns: "i32" } } as const;
/** glibc's and musl's names. */
const libraries = ["libc.so.6", "libc.so", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];
const WNOHANG = 1;

function openWait(): ((pid: number) => void) | undefined {
  for (const library of libraries) {
    try {
      const libc = dlopen(library, symbols);
      return (pid) => void libc.symbols.waitpid(pid, null, WNOHANG);
    } catch {
      // Try the next name.
    }
  }
  return undefined;
}
