/** Rules for names that objects of other owners have. */
import { stackKind, workspaceKind } from "@pko/api";
import type { Occupied } from "@pko/kube";

import { conflictMessage, conflictPauseMs, isForeign } from "../../shared/objects/ownership.ts";
import type { WorkspaceView } from "../view.ts";
import { decide, type Decision, type WorkspaceRule } from "./decision.ts";

export const nameTaken: WorkspaceRule = (view) => (view.occupied?.length ? blockedBy(view, view.occupied) : undefined);

export function blockedBy(view: WorkspaceView, occupied: readonly Occupied[]): Decision {
  const message = conflictMessage(occupied, claimantIn(view));
  const afterMs = conflictPauseMs(occupied, view.now - (view.conflictSince ?? view.now));
  return isForeign(occupied)
    ? decide({ kind: "blocked", message }, afterMs)
    : decide({ kind: "waiting", message, isStuck: false }, afterMs);
}

/** The Workspace of a Stack gets its name from the Stack. */
function claimantIn({ workspace }: WorkspaceView): { readonly kind: string; readonly name: string } {
  const { name = "", ownerReferences = [] } = workspace.metadata;
  const stack = ownerReferences.find(({ kind, controller }) => controller && kind === stackKind.kind);
  return stack ?? { kind: workspaceKind.kind, name };
}
