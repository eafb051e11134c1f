/** Rules about an Update that has not finished. */
import { currentTrigger } from "./due.ts";
import { isOutsideWindow, latestStart } from "./windows.ts";
import { workspaceFailure } from "./workspace.ts";
import { isCancelled, serializeTrigger } from "../history/trigger.ts";
import { isPullRequestPreview } from "../../shared/pull-request-preview.ts";
import * as messages from "../messages.ts";
import { processing, stalled } from "../outcome.ts";
import { wait, type StackPlan } from "../steps.ts";
import {
  isDeleting,
  isProtected,
  suspendedBy,
  unfinishedUpdate,
  validSpec,
  wantsDestroy,
  type StackView,
  type UpdateFacts,
} from "../view.ts";

export function updateCancelled(view: StackView): StackPlan | undefined {
  const update = unfinishedUpdate(view);
  if (!update || update.deleting || !isUnwanted(view, update)) return undefined;
  const { name, uid } = update;
  const outcome = processing(messages.cancelling(update), messages.endOfUpdate(name));
  return { steps: [{ kind: "withdrawUpdate", name, uid }], outcome };
}

/** Whoever deletes the preview of a pull request does not wait for its result, and a preview can be cancelled without harm. */
const isUnwanted = (view: StackView, { name, type }: UpdateFacts): boolean =>
  isCancelled(view.stack, name) || (isDeleting(view) && type === "preview" && isPullRequestPreview(view.stack));

/** An Update that waits for a Workspace that may never become ready would delay the update that can fix it. */
export function updateSuperseded(view: StackView): StackPlan | undefined {
  const update = unfinishedUpdate(view);
  if (!update || update.startedAt !== undefined || update.deleting) return undefined;
  const reason = withdrawalReason(view, update);
  if (reason === undefined) return undefined;
  const { name, uid, resourceVersion } = update;
  const outcome = processing(messages.withdrawing(update, reason), messages.endOfUpdate(name));
  return { steps: [{ kind: "withdrawUpdate", name, uid, resourceVersion }], outcome };
}

function withdrawalReason(view: StackView, update: UpdateFacts): string | undefined {
  const { workspace } = view;
  const { stackDeleted, stackProtected, destroyDisabled, suspended, windowClosed, workspaceMissing, superseded } =
    messages.withdrawalReasons;
  if (isDeleting(view) && update.type !== "destroy") return stackDeleted;
  if (isDeleting(view) && isProtected(view)) return stackProtected;
  if (isDeleting(view) && !wantsDestroy(view)) return destroyDisabled;
  if (suspendedBy(view).length > 0) return suspended;
  if (isOutsideWindow(view, update)) return windowClosed;
  if (workspace.kind !== "present") return workspaceMissing;
  return workspace.state.kind === "ready" || !isOutdated(view, update) ? undefined : superseded;
}

function isOutdated(view: StackView, { type, trigger }: UpdateFacts): boolean {
  const { source, stack } = view;
  const spec = validSpec(view);
  if (!trigger || !spec) return false;
  // A destroy does not depend on the revision.
  if (type === "destroy") return trigger.generation !== stack.metadata.generation;
  if (source.kind !== "ready") return false;
  const { revision, digest } = source;
  return serializeTrigger(currentTrigger(view, { spec, revision, digest })) !== serializeTrigger(trigger);
}

/** The Workspace controller retries the preparation. */
export function updateBlocked(view: StackView): StackPlan | undefined {
  const update = unfinishedUpdate(view);
  const { workspace } = view;
  if (!update || update.startedAt !== undefined || workspace.kind !== "present") return undefined;
  if (workspace.state.kind !== "failed") return undefined;
  return wait(workspaceFailure(workspace.object.metadata.name ?? "", workspace.state), latestStart(view, update));
}

/** Its node may be lost, or its agent does not stop it. */
export function updateStalled(view: StackView): StackPlan | undefined {
  const update = unfinishedUpdate(view);
  if (update?.stall === undefined) return undefined;
  return wait(stalled(update.stall.reason, messages.stuck(update, afterUpdate(view, update))));
}

export function updateRunning(view: StackView): StackPlan | undefined {
  const update = unfinishedUpdate(view);
  if (!update) return undefined;
  const outcome = processing(messages.running(update, afterUpdate(view, update)), messages.endOfUpdate(update.name));
  return wait(outcome, latestStart(view, update));
}

function afterUpdate(view: StackView, { type }: UpdateFacts): messages.AfterUpdate {
  const isSuspended = suspendedBy(view).length > 0;
  if (!isDeleting(view) || type === "destroy") return isSuspended ? "suspend" : "nothing";
  if (isProtected(view)) return "keep";
  if (isSuspended && wantsDestroy(view)) return "suspend";
  return wantsDestroy(view) ? "destroy" : "delete";
}
