/** The locks of the stack `dev`, and the processes of the run `up-1`. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RunProcess } from "@pko/records";

import { killSession } from "../../../packages/agent/src/system/processes.ts";
import { untilStateIsWritten } from "./gate.ts";
import type { TestWorkspace } from "./harness.ts";

export function cliPid(web: TestWorkspace): number {
  const record = readFileSync(join(web.share, "runs/up-1/run.json"), "utf8");
  return Number(/"pid":(\d+)/.exec(record)?.[1]);
}

export function sessionMembers(pid: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && existsSync(`/proc/${name}/stat`))
    .filter((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "utf8");
        const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        return Number(fields[3]) === pid && fields[0] !== "Z";
      } catch {
        return false;
      }
    })
    .map(Number);
}

export function lockFolder(web: TestWorkspace): string {
  return join(web.backend, ".pulumi/locks/organization/demo/dev");
}

export function locks(web: TestWorkspace): string[] {
  const folder = lockFolder(web);
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")) : [];
}

/** Waits until the agent reports the process that holds the lock. */
export async function lockHolder(web: TestWorkspace): Promise<RunProcess> {
  let process: RunProcess | undefined;
  await web.until("up-1", (update) => {
    if (update.type === "event" && update.event.kind === "notice") process ??= update.event.process;
    return process !== undefined;
  });
  if (!process) throw new Error("the run has no process");
  await untilStateIsWritten(web);
  return process;
}

export function killAll(pid: number): void {
  killSession(pid);
}

export function writeLock(web: TestWorkspace, holder: { pid: number; hostname: string; timestamp: string }): void {
  const folder = lockFolder(web);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${crypto.randomUUID()}.json`), JSON.stringify({ username: "someone", ...holder }));
}
