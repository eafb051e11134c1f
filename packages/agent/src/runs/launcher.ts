/** Starting a command of a run, and following one: its own child, or one that an earlier agent left running. */
import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { open } from "node:fs/promises";
import type { PulumiCli } from "../pulumi/cli.ts";
import { claim } from "../system/orphans.ts";
import { identify, isAlive, signalProcess, signalSession, type ProcessIdentity } from "../system/processes.ts";
import type { RunFolder } from "./run-folder.ts";

/** How a command ended. An adopted one cannot be waited for: only its events tell. */
export type LaunchEnd =
  | { readonly kind: "exited"; readonly code: number }
  | { readonly kind: "signalled"; readonly signal: NodeJS.Signals }
  | { readonly kind: "unseen" };

export interface Launched {
  readonly identity: ProcessIdentity;
  readonly ended: Promise<LaunchEnd>;
  /** Aborted when it has ended. */
  readonly over: AbortSignal;
  /** As a user would: the CLI alone, which stops its plugins itself. */
  interrupt(): void;
  /** The whole session. */
  kill(): void;
}

interface LaunchOptions {
  readonly cli: PulumiCli;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly folder: RunFolder;
  readonly launch: number;
  /** More variables, which the command's own win over. */
  readonly env: Readonly<Record<string, string>>;
}

type Launching = { readonly ok: true; readonly launched: Launched } | { readonly ok: false; readonly problem: string };

export async function launch(options: LaunchOptions): Promise<Launching> {
  const { folder } = options;
  const env = { ...options.env, ...(await options.cli.environment()) };
  // Files, not pipes: an agent that dies takes nothing from the CLI, and all that was printed is kept.
  const stdout = openSync(folder.stdout(options.launch), "a", 0o600);
  const stderr = openSync(folder.stderr(options.launch), "a", 0o600);
  let child: ChildProcess;
  try {
    child = spawn(options.cli.file, options.args, {
      cwd: options.cwd,
      env,
      detached: true,
      stdio: ["ignore", stdout, stderr],
    });
  } catch (error) {
    return { ok: false, problem: error instanceof Error ? error.message : String(error) };
  } finally {
    closeSync(stdout);
    closeSync(stderr);
  }
  const failure = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
  });
  if (child.pid === undefined) return { ok: false, problem: await failure };
  return { ok: true, launched: own(claim(child), child.pid) };
}

function own(child: ChildProcess, pid: number): Launched {
  const over = new AbortController();
  const ended = new Promise<LaunchEnd>((resolve) => {
    child.once("exit", (code, signal) => {
      over.abort();
      resolve(signal ? { kind: "signalled", signal } : { kind: "exited", code: code ?? 1 });
    });
  });
  return {
    // It cannot have been waited for yet, so /proc knows it even if it has ended.
    identity: identify(pid) ?? { pid, startTicks: "" },
    ended,
    over: over.signal,
    interrupt: () => signalProcess(pid, "SIGINT"),
    kill: () => signalSession(pid, "SIGKILL"),
  };
}

/** A command of an agent that is gone. It may be alive, or have ended meanwhile. */
export function adopt(identity: ProcessIdentity, pollMs: number): Launched {
  const over = new AbortController();
  const ended = new Promise<LaunchEnd>((resolve) => {
    const look = (): void => {
      if (isAlive(identity)) {
        setTimeout(look, pollMs);
        return;
      }
      over.abort();
      resolve({ kind: "unseen" });
    };
    look();
  });
  return {
    identity,
    ended,
    over: over.signal,
    interrupt: () => {
      if (isAlive(identity)) signalProcess(identity.pid, "SIGINT");
    },
    kill: () => {
      // Not if its number has become that of another process.
      if (isAlive(identity) || !identify(identity.pid)) signalSession(identity.pid, "SIGKILL");
    },
  };
}

const permalink = /^\s*View (?:Live|in Browser[^:]*): (https?:\/\/\S+)/m;
const headBytes = 64 * 1024;

/** The CLI prints it before the first resource. */
export async function findPermalink(folder: RunFolder, launch: number): Promise<string | undefined> {
  return permalink.exec(await readHead(folder, launch))?.[1];
}

/** The first lines of what a command has printed. */
export async function readHead(folder: RunFolder, launch: number): Promise<string> {
  const file = await open(folder.stdout(launch), "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(headBytes), 0, headBytes, 0);
    return buffer.subarray(0, bytesRead).toString("utf8");
  } finally {
    await file.close();
  }
}
