/** Child processes that never outlive this one: the kernel kills them when it ends for any reason. */
import { closeSync, openSync } from "node:fs";

import { goProgramEnv } from "@pko/cluster";

export interface ChildProcess {
  readonly pid: number;
  /** The end of its log, for an error message. */
  readonly log: () => Promise<string>;
  readonly running: boolean;
  readonly exited: Promise<number>;
  /** Sends the signal and waits until the process ends; sends SIGKILL if that takes too long. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

interface ChildOptions {
  readonly command: readonly string[];
  readonly logFile: string;
  /** In addition to PATH and `goProgramEnv`. */
  readonly env?: Readonly<Record<string, string>>;
}

const stopGraceMs = 5000;

export function spawnChild(options: ChildOptions): ChildProcess {
  const log = openSync(options.logFile, "a");
  const child = Bun.spawn(["setpriv", "--pdeathsig", "KILL", "--", ...options.command], {
    stdin: "ignore",
    stdout: log,
    stderr: log,
    env: { PATH: process.env["PATH"] ?? "", ...goProgramEnv, ...options.env },
  });
  closeSync(log);
  return {
    pid: child.pid,
    log: async () => tail(await Bun.file(options.logFile).text()),
    get running() {
      return child.exitCode === null && child.signalCode === null;
    },
    exited: child.exited,
    async stop(signal = "SIGTERM") {
      child.kill(signal);
      const timer = setTimeout(() => child.kill("SIGKILL"), stopGraceMs);
      await child.exited;
      clearTimeout(timer);
    },
  };
}

function tail(text: string): string {
  return text.trimEnd().split("\n").slice(-15).join("\n");
}
