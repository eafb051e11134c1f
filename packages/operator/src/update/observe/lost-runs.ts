/**
 * Runs whose pods no longer exist, and whose CLI process is confirmed to have held the stack's lock. The next run removes the
 * lock that such a process has left (docs/adr/0015-locks-and-lost-nodes.md). Pure.
 */
import type { Update } from "@pko/api";
import type { LostRun } from "@pko/rpc";

import { mayHaveLeftLock } from "../../shared/left-lock.ts";

/** Enough: Updates are deleted after a day, and a lock already blocks the next run. */
const maxLostRuns = 16;

/**
 * `all` are the Updates of its Workspace. The pods of a Workspace have the same name, so while one exists, the pods with other
 * UIDs and their processes do not. The agent itself knows the locks that were left in its own pod.
 */
export function lostRunsOf(update: Update, all: readonly Update[]): LostRun[] {
  const isOther = ({ status }: Update): boolean =>
    status?.podUid !== undefined && status.podUid !== update.status?.podUid;
  const found = all
    .filter((other) => isOther(other) && other.spec?.stackName === update.spec?.stackName)
    .flatMap(lostRunOf);
  return found.toSorted((a, b) => (a.to < b.to ? -1 : 1)).slice(-maxLostRuns);
}

function lostRunOf(update: Update): LostRun[] {
  const { process } = update.status ?? {};
  if (!process || !mayHaveLeftLock(update)) return [];
  const { hostname, pid, startedAt, lockedAt } = process;
  return [{ from: startedAt, to: lockedAt, hostname, pid, startedAt }];
}
