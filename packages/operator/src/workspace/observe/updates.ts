/** The Updates of a Workspace: which of them wait, which run in its pod, and which have ended. */
import { isComplete, type Update, type Workspace } from "@pko/api";
import { builtin, keyOf, type ApiObject, type Store } from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";

import type { Runs } from "../../agents/agents.ts";
import type { Slots } from "../../shared/channels/slots.ts";
import { endTimeOf, hasStackOf, unfinishedIn, workspaceIndex, type UpdateReader } from "../../shared/updates.ts";
import { podNameOf } from "../../shared/pods/workspace-pod.ts";
import type { UpdateFacts } from "../view.ts";
import { parseTimestamp } from "../../shared/parse-timestamp.ts";

interface UpdateWorld {
  /** With `updateIndexers`. */
  readonly updates: Store<Update>;
  readonly runs: Pick<Runs, "find">;
  readonly slots: Pick<Slots, "state">;
}

interface Place {
  readonly workspace: Workspace;
  readonly pod: ApiObject<Pod> | undefined;
  readonly runs?: UpdateWorld["runs"];
  /** Whether the workspace has a slot, or that is not known. */
  readonly hasSlot: boolean;
}

export function observeUpdates(
  { updates, runs, slots }: UpdateWorld,
  workspace: Workspace,
  pod: ApiObject<Pod> | undefined,
): UpdateFacts[] {
  const hasSlot = slots.state(keyOf(workspace)).kind === "held";
  return factsOf(updates.byIndex(workspaceIndex, keyOf(workspace)), { workspace, pod, runs, hasSlot });
}

/** Whether an unfinished Update was started in this pod. */
export function hasRun({ updates }: Pick<UpdateWorld, "updates">, workspace: Workspace, pod: ApiObject<Pod>): boolean {
  return updates
    .activeByIndex(workspaceIndex, keyOf(workspace))
    .some((update) => !isComplete(update) && update.status?.podUid === pod.metadata.uid);
}

/**
 * The Updates that have not ended, and which of them are in the pod, read from the API server. Undefined where no pod exists
 * in which an Update could run.
 */
export async function unfinishedNow(reader: UpdateReader, workspace: Workspace): Promise<UpdateFacts[] | undefined> {
  const { client, signal } = reader;
  const { name = "", namespace = "" } = workspace.metadata;
  const pod = await client.find(builtin.pods, { namespace, name: podNameOf(name) }, { signal });
  if (!pod || pod.status?.phase === "Failed" || pod.status?.phase === "Succeeded") return undefined;
  return factsOf(await unfinishedIn(reader, { namespace, name }), { workspace, pod, hasSlot: true });
}

/** An Update that can never run here does not keep the pod. */
function factsOf(updates: readonly Update[], place: Place): UpdateFacts[] {
  return updates.flatMap((update) => {
    const facts = updateFacts(update, place);
    return (facts.phase === "waiting" || facts.phase === "queued") && !hasStackOf(place.workspace, update)
      ? []
      : [facts];
  });
}

function updateFacts(update: Update, { pod, runs, hasSlot }: Place): UpdateFacts {
  const name = update.metadata.name ?? "";
  const { podUid } = update.status ?? {};
  if (isComplete(update)) {
    const endedAt = parseTimestamp(endTimeOf(update));
    return { name, phase: "ended", ...(endedAt !== undefined && { endedAt }) };
  }
  if (podUid === undefined || podUid !== pod?.metadata.uid) return { name, phase: hasSlot ? "waiting" : "queued" };
  const run = runs?.find({ uid: podUid }, update.metadata.uid ?? "");
  const isUnprepared = run?.state === "refused" && run.code === "unprepared";
  return { name, phase: "onPod", ...(isUnprepared && { isUnprepared }) };
}
