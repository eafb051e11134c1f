/**
 * The first process of a container inherits the processes that others leave behind, and has to see them off when they end:
 * else each stays in the table of processes, until there is no room for another. Pulumi's plugins and the programs'
 * package managers leave some in every run.
 *
 * The one module that needs `bun:ffi`, for a call that neither Bun nor `node:` offers.
 */
import { dlopen } from "bun:ffi";
import type { ChildProcess } from "node:child_process";
import { endedChildren, type ProcessIdentity } from "./processes.ts";

/** Children that Bun itself sees off, and whose end it has not told yet. */
const own = new Set<number>();

/** To be called for every process that is started. */
export function claim<T extends Pick<ChildProcess, "pid" | "once">>(child: T): T {
  const { pid } = child;
  if (pid === undefined) return child;
  own.add(pid);
  child.once("exit", () => own.delete(pid));
  return child;
}

const lookMs = 15_000;

/** Looks now and then, for as long as the process lives. Nothing where there is no libc to ask. */
export function seeOffOrphans(everyMs = lookMs): void {
  const waitFor = openWait();
  if (!waitFor) return;
  let before: readonly ProcessIdentity[] = [];
  const look = (): void => {
    const ended = endedChildren(process.pid).filter(({ pid }) => !own.has(pid));
    for (const orphan of ended) {
      // Twice: Bun is about to see off what it has not told us of, such as a process it started for itself.
      if (before.some(({ pid, startTicks }) => pid === orphan.pid && startTicks === orphan.startTicks)) {
        waitFor(orphan.pid);
      }
    }
    before = ended;
  };
  setInterval(look, everyMs).unref();
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
      // The next name, then.
    }
  }
  return undefined;
}
