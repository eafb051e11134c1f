/** Stacks that are deleted together are destroyed in reverse order: those that depend on others first. Pure. */
import { parseTimestamp } from "../../../shared/parse-timestamp.ts";
import * as messages from "../../messages.ts";
import { wait, type StackPlan } from "../../steps.ts";
import { isDeleting, unfinishedUpdate, wantsDestroy, type DependentView, type StackView } from "../../view.ts";
import { isDestroyed, isNothingDeployed } from "./deletion.ts";

/** Stacks that are deleted together are deleted one by one, so the deletion of a dependent may arrive later. */
export const dependentsMs = 15_000;

export function dependentsLeft(view: StackView): StackPlan | undefined {
  if (!isDeleting(view) || unfinishedUpdate(view) || isDestroyed(view) || isNothingDeployed(view)) return undefined;
  const dependents = concernedDependents(view);
  const deleting = dependents.filter((each) => each.deleting);
  const waitingFor = (names: readonly DependentView[]): string => messages.stackNames(names.map(({ name }) => name));
  if (deleting.length > 0) {
    const message = messages.dependentsDeleting(deleting.map(({ name }) => name));
    return wait({ kind: "dependents", message, waitingFor: waitingFor(deleting) });
  }
  const proceedAt = (parseTimestamp(view.stack.metadata.deletionTimestamp) ?? 0) + dependentsMs;
  if (dependents.length === 0 || view.now >= proceedAt) return undefined;
  const message = messages.dependentsLive({ names: dependents.map(({ name }) => name), proceedAt });
  return wait({ kind: "dependents", message, waitingFor: waitingFor(dependents) }, proceedAt);
}

/**
 * If nothing is destroyed, only dependents that are destroyed matter: their workspaces may need the outputs of this Stack.
 * Stacks that depend on each other do not wait.
 */
function concernedDependents(view: StackView): readonly DependentView[] {
  return view.dependents.filter((each) => !each.isInCycle && (wantsDestroy(view) || each.wantsDestroy));
}
