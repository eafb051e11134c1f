/**
 * Runs whose pods no longer exist, and whose CLI process is confirmed to have held the stack's lock. The next run removes the
 * lock that such a process has left (docs/adr/0015-locks-and-lost-nodes.md). Pure.
 */
import type { Update } from "@pko/api";
import type { LostRun } from "@pko/rpc";

/** Ends at which the CLI may not have removed its lock. One that failed or succeeded has done so. */
const lockingEnds: ReadonlySet<string> = new Set(["Aborted", "Canceled", "Unknown"]);
/** Updates are deleted after a day; a lock blocks the very next one. */
const most = 16;

/**
 * `all` are the Updates of its Workspace. Pods of a Workspace have one name, so whoever runs in a pod knows that the pods of
 * other UIDs are gone, and their processes with them. What its own pod has left, the agent there knows best.
 */
export function lostRunsOf(update: Update, all: readonly Update[]): LostRun[] {
  const isOther = ({ status }: Update): boolean =>
    status?.podUid !== undefined && status.podUid !== update.status?.podUid;
  const found = all
    .filter((other) => isOther(other) && other.spec?.stackName === update.spec?.stackName)
    .flatMap(lostRunOf);
  return found.toSorted((a, b) => (a.to < b.to ? -1 : 1)).slice(-most);
}

function lostRunOf({ status }: Update): LostRun[] {
  const failed = status?.conditions?.find(({ type }) => type === "Failed");
  if (!status?.process || failed?.status !== "True" || !lockingEnds.has(failed.reason)) return [];
  const { hostname, pid, startedAt, lockedAt } = status.process;
  return [{ from: startedAt, to: lockedAt, hostname, pid, startedAt }];
}
