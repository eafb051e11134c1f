/** Which Updates may start after a plan: the controller publishes them to the Update controller. */
import { refKey, type Key } from "@pko/kube";

import type { WorkspacePlan } from "../steps.ts";
import type { WorkspaceView } from "../view.ts";

/** The Updates that were observed before the inputs were read, provided that the pod stays. */
export function clearedUpdates(view: WorkspaceView, { outcome }: WorkspacePlan): Key[] {
  const isSettled = outcome.kind === "ready" || outcome.kind === "unchanged";
  if (!view.inputs || !isSettled) return [];
  const { namespace = "" } = view.workspace.metadata;
  return view.updates.filter(({ phase }) => phase === "waiting").map(({ name }) => refKey({ namespace, name }));
}
