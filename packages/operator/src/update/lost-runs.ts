/** Runs that ended with their pods. Nobody saw whether the CLI took its lock of the stack away: the next run may. Pure. */
import type { Update } from "@pko/api";
import type { LostRun } from "@pko/rpc";

/** Ends that no agent has told. A run that failed has let its lock go, or never had it. */
const unseenEnds: ReadonlySet<string> = new Set(["Aborted", "Canceled", "Unknown"]);
/** Updates go after a day; a lock is in the way of the very next one. */
const most = 16;

/** `all` are the Updates of its Workspace. */
export function lostRunsOf(update: Update, all: readonly Update[]): LostRun[] {
  const found = all.flatMap(({ spec, status }): LostRun[] => {
    const { startTime: from, endTime: to, conditions = [] } = status ?? {};
    const failed = conditions.find(({ type }) => type === "Failed");
    const isLost = failed?.status === "True" && unseenEnds.has(failed.reason);
    return isLost && from && to && spec?.stackName === update.spec?.stackName ? [{ from, to }] : [];
  });
  return found.toSorted((a, b) => (a.to < b.to ? -1 : 1)).slice(-most);
}
