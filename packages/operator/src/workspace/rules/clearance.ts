/** Which Updates may start after a plan: the controller publishes them to the Update controller. */
import { refKey, type Key } from "@pko/kube";

import type { WorkspacePlan } from "../steps.ts";
import type { Inputs, WorkspaceView } from "../view.ts";

/** The Updates that were observed before the inputs were read, provided that the pod stays and has what they need. */
export function clearedUpdates(view: WorkspaceView, { outcome }: WorkspacePlan): Key[] {
  const isSettled = outcome.kind === "ready" || outcome.kind === "unchanged";
  if (!view.inputs || !isSettled || !isPreparedFor(view.inputs, view)) return [];
  const { namespace = "" } = view.workspace.metadata;
  return view.updates.filter(({ phase }) => phase === "waiting").map(({ name }) => refKey({ namespace, name }));
}

/** If the request cannot be built, because its source no longer exists, a run uses what was prepared last. */
function isPreparedFor({ requested }: Inputs, { preparation, isKnownPrepared }: WorkspaceView): boolean {
  if (requested.kind === "incomplete") return isKnownPrepared === true;
  return preparation?.state === "done" && preparation.result.ok;
}
