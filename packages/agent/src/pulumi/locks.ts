/**
 * The lock of a DIY backend, as the CLI reports it when it blocks a command. It is removed only if a confirmed run of this
 * workspace acquired it and is dead (docs/adr/0015-locks-and-lost-nodes.md). The counterpart for Pulumi Cloud is
 * cloud/own-update.ts.
 *
 * A lock contains the host and the PID of its holder. Two clusters that share a bucket or a file system may have equal pod
 * names, and PIDs in containers are small numbers, so host and PID prove nothing. But only one process can hold the lock
 * at a time: if a process is known to have held it, a lock from the period in which it must have acquired it is its own.
 */
import type { RunProcess } from "@pko/records";
import type { LostRun } from "@pko/rpc";
import type { StepKind } from "./operation.ts";

interface LockHolder {
  /** The location of the lock. */
  readonly url: string;
  readonly username: string;
  readonly hostname: string;
  readonly pid: number;
  readonly time: Date;
  /** The time as printed in the report. */
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
  const lines = text.matchAll(/(?<!\S)(\S+): created by (\S*)@([^\s@]+) \(pid (\d+)\) at (\S+)/g);
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

/** Whether one of these dead processes left behind every lock: `pulumi cancel` removes all locks. */
export function isAllStale(report: LockReport, dead: readonly RunProcess[]): boolean {
  return (
    report.count > 0 &&
    report.holders.length === report.count &&
    report.holders.every((holder) => dead.some((process) => isHeldBy(holder, process)))
  );
}

/** The report has whole seconds. Its time and the process's come from the same clock, that of the process's node. */
function isHeldBy({ hostname, pid, time }: LockHolder, process: RunProcess): boolean {
  const first = Math.floor(Date.parse(process.startedAt) / 1000) * 1000;
  const isInTime = time.getTime() >= first && time.getTime() <= Date.parse(process.lockedAt);
  return hostname === process.hostname && pid === process.pid && isInTime;
}

/** The processes of lost runs that are confirmed to have held the lock. */
export function confirmedProcesses(lostRuns: readonly LostRun[]): RunProcess[] {
  return lostRuns.flatMap(({ hostname, pid, startedAt, to }) =>
    hostname === undefined || pid === undefined || startedAt === undefined
      ? []
      : [{ hostname, pid, startedAt, lockedAt: to }],
  );
}

/**
 * Whether the output has the headline of an update, refresh or destroy, which the CLI prints after it acquired the lock.
 * An update with a plan previews while it holds the lock.
 */
export function showsLock(printed: string, kind: StepKind): boolean {
  switch (kind) {
    case "preview":
    case "check":
      return false;
    case "change":
      return /^(?:Updating|Refreshing|Destroying) \(.+\):$/m.test(printed);
    case "planned":
      return /^(?:Previewing update|Updating) \(.+\):$/m.test(printed);
  }
}

interface LockedAt {
  readonly pod: string;
  readonly namespace: string | undefined;
  readonly stack: string;
}

/** Describes the lock holders, why the locks stay, and the remedy. */
export function describeLocks({ holders }: LockReport, { pod, namespace, stack }: LockedAt): string {
  const inNamespace = namespace === undefined ? "" : ` -n ${namespace}`;
  const who = holders.map(
    ({ username, hostname, pid, since, url }) => `${username}@${hostname} (pid ${pid}) since ${since}, ${url}`,
  );
  return (
    `the stack is locked by ${who.join("; ")}. ` +
    "The operator removes a lock only if it is sure that a dead run of this workspace acquired it. " +
    "If you are sure that no other update of the stack is running anywhere, remove the lock with " +
    `\`pulumi cancel --yes --stack ${stack}\` in the workspace's pod ` +
    `(kubectl exec -it ${pod}${inNamespace} -c pulumi -- bash). The Stack then continues automatically`
  );
}
