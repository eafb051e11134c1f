/** What the other Updates of the Workspace mean for this one. Pure. */
import type { Update, Workspace } from "@pko/api";

import { hasStackOf, isComplete } from "../../shared/updates.ts";

/**
 * The Update that has to complete before this one may start: a workspace has one run at a time, and the Updates that wait
 * for it start in the order of their creation. `all` are the Updates of the Workspace.
 */
export function firstInLine(
  update: Update,
  all: readonly Update[],
  workspace: Workspace | undefined,
): string | undefined {
  if (update.status?.podUid !== undefined) return undefined;
  const rivals = all.filter((other) => other.metadata.uid !== update.metadata.uid && !isComplete(other));
  const running = rivals.find((other) => other.status?.podUid !== undefined);
  if (running) return running.metadata.name;
  const earlier = rivals.filter(
    (other) =>
      other.metadata.deletionTimestamp === undefined &&
      isEarlier(other, update) &&
      (!workspace || hasStackOf(workspace, other)),
  );
  return earlier.toSorted((a, b) => (isEarlier(a, b) ? -1 : 1))[0]?.metadata.name;
}

function isEarlier(a: Update, b: Update): boolean {
  const order = ({ metadata }: Update): string => `${metadata.creationTimestamp ?? ""}/${metadata.name ?? ""}`;
  return order(a) < order(b);
}

/** Operations after which a resource exists. */
const existing = new Set(["same", "create", "update", "replace", "create-replacement", "import", "refresh", "read"]);

/** How many resources the last operation on the stack left, for the percentage of the progress. */
export function expectedResources(update: Update, all: readonly Update[]): number | undefined {
  if (update.status?.podUid === undefined || isComplete(update)) return undefined;
  const earlier = all
    .filter(
      ({ spec, status }) =>
        spec?.stackName === update.spec?.stackName &&
        spec?.type !== "preview" &&
        spec?.previewOnly !== true &&
        status?.changes !== undefined,
    )
    .toSorted((a, b) => ((a.status?.endTime ?? "") < (b.status?.endTime ?? "") ? -1 : 1));
  const changes = earlier.at(-1)?.status?.changes ?? {};
  const total = Object.entries(changes).reduce((sum, [op, count]) => sum + (existing.has(op) ? count : 0), 0);
  return total > 0 ? total : undefined;
}
