/**
 * Removes what a dead run of this workspace left behind: its lock, or in Pulumi Cloud its update. Locks and updates of
 * others are kept.
 */
import { cloudUrl } from "../pulumi/cloud/backend.ts";
import { cancelOwnUpdate } from "../pulumi/cloud/own-update.ts";
import { classify } from "../pulumi/explain.ts";
import { confirmedProcesses, isAllStale, parseLockReport, type LockReport } from "../pulumi/locks.ts";
import { isStackRemoved } from "../pulumi/operation.ts";
import { isAlive } from "../system/processes.ts";
import type { RunContext } from "./run-context.ts";
import type { RunRecord } from "./run-folder.ts";

interface OwnLocksOptions extends Pick<RunContext, "cli" | "log" | "earlierLaunches" | "workspaceUid"> {
  readonly runId: string;
  /** Reports what was removed as an event of the run. */
  readonly notify: (message: string) => Promise<void>;
}

export class OwnLocks {
  readonly #options: OwnLocksOptions;

  constructor(options: OwnLocksOptions) {
    this.#options = options;
  }

  /** Removes the lock or update that stopped a command, which printed `printed`; true if a dead run of this workspace held it. */
  async removeStale(record: RunRecord, printed: string): Promise<boolean> {
    if (record.cancelled) return false;
    const report = parseLockReport(printed);
    if (report) return await this.#removeLocks(record, report);
    return classify(printed)?.class === "conflict" && (await this.#cancelUpdate(record));
  }

  /** A command that was killed cannot remove its lock. If this fails, the next run removes it. */
  async release(record: RunRecord): Promise<void> {
    const { cli, log, runId } = this.#options;
    const { stack, backend, projectFolder } = record.ready;
    if (record.cancelled === "stopping" || isStackRemoved(record.operation)) return;
    try {
      if (cloudUrl(await cli.environment(), backend) !== undefined) {
        await this.#cancelUpdate(record);
      } else if (record.launches.at(-1)?.holder) {
        // Changes nothing, because the stack exists. The CLI checks for locks first and reports them.
        const end = await cli.run({ args: ["stack", "init", stack, "--no-select"], cwd: projectFolder });
        const report = end.kind === "exited" ? parseLockReport(end.stderr) : undefined;
        if (report) await this.#removeLocks(record, report);
      }
    } catch (error) {
      log.warn("cannot release the lock", { run: runId, error });
    }
  }

  async #removeLocks({ launches, lostRuns = [], ready }: RunRecord, report: LockReport): Promise<boolean> {
    const { cli, log, earlierLaunches, runId, notify } = this.#options;
    const dead = [...earlierLaunches, ...launches].filter((launch) => !isAlive(launch));
    const holders = [...dead.flatMap(({ holder }) => holder ?? []), ...confirmedProcesses(lostRuns)];
    if (!isAllStale(report, holders)) return false;
    const { stack, projectFolder } = ready;
    const end = await cli.run({ args: ["cancel", "--yes", `--stack=${stack}`], cwd: projectFolder });
    if (end.kind !== "exited" || end.code !== 0) return false;
    const [holder] = report.holders;
    log.info("stale lock removed", { run: runId, pulumiStack: stack, pid: holder?.pid });
    await notify(`removed the lock that an interrupted run left behind (PID ${holder?.pid})`);
    return true;
  }

  async #cancelUpdate({ ready }: RunRecord): Promise<boolean> {
    const { cli, log, workspaceUid, runId, notify } = this.#options;
    if (workspaceUid === undefined) return false;
    const { stack, backend, project } = ready;
    const query = { env: await cli.environment(), backend, workspaceUid, stack, project: project.name };
    const update = await cancelOwnUpdate(query);
    if (update === undefined) return false;
    log.info("stale update cancelled", { run: runId, pulumiStack: stack, cloudUpdate: update });
    await notify(`cancelled the update that an interrupted run left behind (${update})`);
    return true;
  }
}
