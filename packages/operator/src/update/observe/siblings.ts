/** Facts about the other Updates of the Workspace. Pure. */
import { isComplete, type Update, type Workspace } from "@pko/api";

import { hasStackOf } from "../../shared/updates.ts";
import type { FormerOutputs, SiblingFacts } from "../view.ts";

/** `all` are the Updates of the Workspace. */
export function unfinishedSiblings(
  update: Update,
  all: readonly Update[],
  workspace: Workspace | undefined,
): SiblingFacts[] {
  return all
    .filter((other) => other.metadata.uid !== update.metadata.uid && !isComplete(other))
    .map((other) => ({
      name: other.metadata.name ?? "",
      createdAt: other.metadata.creationTimestamp ?? "",
      hasStarted: other.status?.podUid !== undefined,
      isDeleting: other.metadata.deletionTimestamp !== undefined,
      canRun: !workspace || hasStackOf(workspace, other),
    }));
}

/** Operations after which a resource exists. */
const existing = new Set(["same", "create", "update", "replace", "create-replacement", "import", "refresh", "read"]);

/** `all` are the Updates of the Workspace. */
export function formerOutputs(update: Update, all: readonly Update[]): FormerOutputs | undefined {
  if (update.status?.podUid === undefined || isComplete(update)) return undefined;
  const last = all
    .filter(({ metadata, spec, status }) => {
      const isOther = metadata.uid !== update.metadata.uid && metadata.deletionTimestamp === undefined;
      return isOther && spec?.stackName === update.spec?.stackName && status?.outputs !== undefined;
    })
    .filter((other) => isComplete(other))
    .toSorted((a, b) => ((a.status?.endTime ?? "") < (b.status?.endTime ?? "") ? -1 : 1))
    .at(-1);
  const { name: updateName = "", uid: updateUid = "" } = last?.metadata ?? {};
  return last?.status?.outputs === undefined ? undefined : { updateName, updateUid, secretName: last.status.outputs };
}

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
