/** Whether an Update that waits needs the slot of its workspace. */
import type { UpdateView } from "../view.ts";

/** An Update that claims again keeps its place: that depends on its creation. */
export function needsSlot({ workspace, slot }: Pick<UpdateView, "workspace" | "slot">): boolean {
  switch (workspace.state) {
    case "missing":
    case "deleting":
    case "otherStack":
      return false;
    case "notReady":
      // With the slot, the Workspace is being woken for the Update.
      return slot.kind === "held";
    case "idle":
    case "ready":
      return true;
  }
}
