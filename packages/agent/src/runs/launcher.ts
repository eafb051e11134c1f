/** Starts a run's command, or adopts one that an earlier agent process started. */
import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { open } from "node:fs/promises";
import type { PulumiCli } from "../pulumi/cli.ts";
import { trackChild } from "../system/orphans.ts";
import { identify, isAlive, killSession, signalProcess, type ProcessIdentity } from "../system/processes.ts";
import type { RunFolder } from "./run-folder.ts";

/** How a command ended. The exit code of an adopted command is unknown: only its events show the result. */
export type LaunchEnd =
  | { readonly kind: "exited"; readonly code: number }
  | { readonly kind: "signalled"; readonly signal: NodeJS.Signals }
  | { readonly kind: "unseen" };

export interface Launched {
  readonly identity: ProcessIdentity;
  readonly ended: Promise<LaunchEnd>;
  /** Aborted when the command has ended. */
  readonly over: AbortSignal;
  /** Sends SIGINT to the CLI, which stops its plugins itself. */
  interrupt(): void;
  /** Kills all processes of the session. */
  kill(): void;
}

interface LaunchOptions {
  readonly cli: PulumiCli;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly folder: RunFolder;
  readonly launch: number;
  /** Additional variables; the CLI's environment takes precedence. */
  readonly env: Readonly<Record<string, string>>;
}

type Launching = { readonly ok: true; readonly launched: Launched } | { readonly ok: false; readonly problem: string };

export async function launch(options: LaunchOptions): Promise<Launching> {
  const { folder } = options;
  const env = { ...options.env, ...(await options.cli.environment()) };
  // Files instead of pipes: the CLI continues if the agent dies, and the output is kept.
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
  return { ok: true, launched: followChild(trackChild(child), child.pid) };
}

function followChild(child: ChildProcess, pid: number): Launched {
  const over = new AbortController();
  const ended = new Promise<LaunchEnd>((resolve) => {
    child.once("exit", (code, signal) => {
      over.abort();
      resolve(signal ? { kind: "signalled", signal } : { kind: "exited", code: code ?? 1 });
    });
  });
  return {
    // It is not reaped yet, so /proc has it even if it has exited.
    identity: identify(pid) ?? { pid, startTicks: "" },
    ended,
    over: over.signal,
    interrupt: () => signalProcess(pid, "SIGINT"),
    kill: () => killSession(pid),
  };
}

/** Follows a command of an earlier agent process. It may be alive or have ended. */
export function adopt(identity: ProcessIdentity, pollMs: number): Launched {
  const over = new AbortController();
  const ended = new Promise<LaunchEnd>((resolve) => {
    const poll = (): void => {
      if (isAlive(identity)) {
        setTimeout(poll, pollMs);
        return;
      }
      over.abort();
      resolve({ kind: "unseen" });
    };
    poll();
  });
  return {
    identity,
    ended,
    over: over.signal,
    interrupt: () => {
      if (isAlive(identity)) signalProcess(identity.pid, "SIGINT");
    },
    kill: () => {
      // Not if another process has the PID now.
      if (isAlive(identity) || !identify(identity.pid)) killSession(identity.pid);
    },
  };
}

const permalink = /^[ \t]*View (?:Live|in Browser[^:]*): (https?:\/\/\S+)/m;
const headBytes = 64 * 1024;

/** The CLI prints the link before the first resource. */
export async function findPermalink(folder: RunFolder, launch: number): Promise<string | undefined> {
  return permalink.exec(await readHead(folder, launch))?.[1];
}

/** The start of a command's output. */
export async function readHead(folder: RunFolder, launch: number): Promise<string> {
  const file = await open(folder.stdout(launch), "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(headBytes), 0, headBytes, 0);
    return buffer.subarray(0, bytesRead).toString("utf8");
  } finally {
    await file.close();
  }
}
