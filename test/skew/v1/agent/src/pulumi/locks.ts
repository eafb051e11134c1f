/**
 * The lock of a DIY backend, as the CLI tells of it when it is in the way. A lock is released only when its holder was
 * of this workspace and is dead. What stands for a lock on Pulumi Cloud is in cloud/own-update.ts.
 *
 * A lock names the host of its holder, which is a pod of this workspace's name: here, or, where a bucket is shared, in
 * another cluster. So the name alone proves nothing. What a run of this pod held is known by its process; what one of an
 * earlier pod held, by the time at which the operator knows it to have run: nobody else can have taken a lock meanwhile.
 */
import type { LostRun } from "../../../rpc/src/index.ts";

interface LockHolder {
  /** Where the lock is. */
  readonly url: string;
  readonly username: string;
  readonly hostname: string;
  readonly pid: number;
  readonly time: Date;
}

export interface LockReport {
  readonly count: number;
  readonly holders: readonly LockHolder[];
}

/** From "the stack is currently locked by 1 lock(s) … created by root@host (pid 7) at 2026-01-01T00:00:00Z". */
export function parseLockReport(text: string): LockReport | undefined {
  const count = /the stack is currently locked by (\d+) lock\(s\)/.exec(text);
  if (!count) return undefined;
  const lines = text.matchAll(/(\S+): created by (\S*)@(\S+) \(pid (\d+)\) at (\S+)/g);
  const holders = [...lines].map(([, url = "", username = "", hostname = "", pid, time = ""]) => ({
    url,
    username,
    hostname,
    pid: Number(pid),
    time: new Date(time),
  }));
  return { count: Number(count[1]), holders };
}

export interface LockJudge {
  readonly hostname: string;
  readonly agentStartedAt: Date;
  /** CLI processes of this agent's own runs. */
  readonly ownPids: ReadonlySet<number>;
  /** Of this workspace, in pods that are gone. */
  readonly lostRuns: readonly LostRun[];
  /** When the process of that number began, if one is alive. */
  readonly startOf: (pid: number) => Date | undefined;
}

/** Whether every lock was left behind by a dead process of this pod: `pulumi cancel` takes them all away. */
export function isAllStale(report: LockReport, judge: LockJudge): boolean {
  return report.count > 0 && report.holders.length === report.count && report.holders.every((h) => isStale(h, judge));
}

function isStale(holder: LockHolder, judge: LockJudge): boolean {
  if (holder.hostname !== judge.hostname || Number.isNaN(holder.time.getTime())) return false;
  const start = judge.startOf(holder.pid);
  // The process that took the lock was there when it did; the report has whole seconds.
  if (start && start.getTime() <= holder.time.getTime() + 1_000) return false;
  if (judge.ownPids.has(holder.pid) || judge.lostRuns.some((run) => isWithin(holder.time, run))) return true;
  // Files are on a volume of this namespace, where a pod of this name is ours.
  return holder.url.startsWith("file://") && holder.time < judge.agentStartedAt;
}

/** The clocks of two machines differ, and the report has whole seconds. */
const slackMs = 5_000;

function isWithin(time: Date, { from, to }: LostRun): boolean {
  const [first, last] = [Date.parse(from) - slackMs, Date.parse(to) + slackMs];
  return time.getTime() >= first && time.getTime() <= last;
}
