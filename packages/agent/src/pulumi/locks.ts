/**
 * The lock of a DIY backend, as the CLI reports it when it is in the way. It is removed only if a confirmed run of this
 * workspace took it and is dead (docs/adr/0015-locks-and-lost-nodes.md). The counterpart on Pulumi Cloud is in
 * cloud/own-update.ts.
 *
 * A lock names the host and the PID of its holder. Two clusters that share a bucket or a file system may have equal pod names,
 * and PIDs in containers are small numbers, so both together prove nothing. But while one process holds the lock, no other
 * can take it. So of a process that is known to have held it, a lock from the time in which it must have taken it is its own.
 */
import type { LostRun, RunProcess } from "@pko/rpc";

interface LockHolder {
  /** Where the lock is. */
  readonly url: string;
  readonly username: string;
  readonly hostname: string;
  readonly pid: number;
  readonly time: Date;
  /** The time as it is in the report. */
  readonly since: string;
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
    since: time,
  }));
  return { count: Number(count[1]), holders };
}

/** Whether every lock was left behind by one of these processes, which are dead: `pulumi cancel` removes all locks. */
export function isAllStale(report: LockReport, dead: readonly RunProcess[]): boolean {
  return (
    report.count > 0 &&
    report.holders.length === report.count &&
    report.holders.every((holder) => dead.some((process) => isHeldBy(holder, process)))
  );
}

/** The report has whole seconds; its time and the process's are of one clock, that of the process's node. */
function isHeldBy({ hostname, pid, time }: LockHolder, process: RunProcess): boolean {
  const first = Math.floor(Date.parse(process.startedAt) / 1000) * 1000;
  const isInTime = time.getTime() >= first && time.getTime() <= Date.parse(process.lockedAt);
  return hostname === process.hostname && pid === process.pid && isInTime;
}

/** Those runs of earlier pods whose process is confirmed to have held the lock. */
export function confirmed(lostRuns: readonly LostRun[]): RunProcess[] {
  return lostRuns.flatMap(({ hostname, pid, startedAt, to }) =>
    hostname === undefined || pid === undefined || startedAt === undefined
      ? []
      : [{ hostname, pid, startedAt, lockedAt: to }],
  );
}

/** The first line of an update, a refresh or a destroy, which the CLI prints when it has taken the lock. */
export function showsLock(printed: string): boolean {
  return /^(?:Updating|Refreshing|Destroying) \(.+\):$/m.test(printed);
}

interface LockedAt {
  readonly pod: string;
  readonly namespace: string | undefined;
  readonly stack: string;
}

/** Who holds the locks, why they stay, and what to do about them. */
export function describeLocks({ holders }: LockReport, { pod, namespace, stack }: LockedAt): string {
  const inNamespace = namespace === undefined ? "" : ` -n ${namespace}`;
  const who = holders.map(
    ({ username, hostname, pid, since, url }) => `${username}@${hostname} (pid ${pid}) since ${since}, ${url}`,
  );
  return (
    `the stack is locked by ${who.join("; ")}. ` +
    "The operator removes a lock only if it knows that a run of this workspace took it and is dead. " +
    "If you are sure that no other update of the stack is running anywhere, remove the lock with " +
    `\`pulumi cancel --yes --stack ${stack}\` in the workspace's pod ` +
    `(kubectl exec -it ${pod}${inNamespace} -c pulumi -- bash). The Stack then continues on its own`
  );
}
