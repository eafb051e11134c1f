/** Steps that apply and delete the Workspace of a Stack. */
import { fieldManagers } from "@pko/api";
import { applyOwned, deleteOwned } from "@pko/kube";

import { workspaces } from "../../kinds.ts";
import { unfinishedIn } from "../../shared/updates.ts";
import type { Step } from "../steps.ts";
import type { StackView } from "../view.ts";
import { ownedTarget, performedBy, replan, stackRef, type PerformedStep, type Performer } from "./performer.ts";

export async function applyWorkspace(
  performer: Performer,
  view: StackView,
  { workspace }: Extract<Step, { kind: "applyWorkspace" }>,
): Promise<PerformedStep> {
  const { metadata, ...rest } = workspace;
  const body = { ...rest, metadata: { ...metadata, name: metadata.name ?? "" } };
  const write = { resource: workspaces, body };
  const written = await applyOwned(ownedTarget(performer, view), write, { fieldManager: fieldManagers.operator });
  return performedBy(written, "occupied");
}

/** An Update that runs in it would be interrupted, so unfinished ones are read from the API server first. */
export async function deleteWorkspace(
  performer: Performer,
  view: StackView,
  { uid }: Extract<Step, { kind: "deleteWorkspace" }>,
): Promise<PerformedStep> {
  const unfinished = await unfinishedIn(performer, stackRef(view));
  const running = unfinished.find(({ status }) => status?.podUid !== undefined);
  if (running) return replan({ otherUpdate: running.metadata.name ?? "" });
  const target = { ...ownedTarget(performer, view), uid };
  const destination = { resource: workspaces, ref: stackRef(view) };
  return performedBy(await deleteOwned(target, destination, { propagationPolicy: "Background" }), "occupied");
}
