/** Rules about finalizers, and about a Stack that is being deleted. */
import type { NormalStack } from "@pko/api";

import type { WorkspaceOrigin } from "../../desired/workspace.ts";
import { lastTypeOf } from "../../history/trigger.ts";
import * as messages from "../../messages.ts";
import { processing, stalled } from "../../outcome.ts";
import { unchanged, wait, type StackPlan } from "../../steps.ts";
import {
  hasFinalizer,
  isDeleting,
  isFinished,
  isProtected,
  lastUpdateIn,
  unfinishedUpdate,
  validSpec,
  wantsDestroy,
  type StackView,
} from "../../view.ts";
import { destroyDue } from "../due.ts";
import { workspaceInUseMs } from "../no-update-due.ts";
import { recheckAt } from "../recheck.ts";

/** Finalizers of others may still delay the deletion. */
export function finalizerRemoved(view: StackView): StackPlan | undefined {
  return isDeleting(view) && !hasFinalizer(view) ? wait(unchanged) : undefined;
}

/** Policies deny the deletion, except to the namespace controller and the garbage collector. A running update ends first. */
export function deletionProtected(view: StackView): StackPlan | undefined {
  if (!isDeleting(view) || !isProtected(view) || unfinishedUpdate(view)) return undefined;
  return wait(stalled("Protected", messages.deletionProtected(wantsDestroy(view))));
}

export function deletedWithoutDestroy(view: StackView): StackPlan | undefined {
  if (!isDeleting(view) || wantsDestroy(view) || unfinishedUpdate(view)) return undefined;
  return removeFinalizer(view, { nothingDeployed: false });
}

export function destroyed(view: StackView): StackPlan | undefined {
  return isDeleting(view) && isDestroyed(view) ? removeFinalizer(view, { nothingDeployed: false }) : undefined;
}

export function isDestroyed(view: StackView): boolean {
  const last = lastUpdateIn(view);
  return last !== undefined && lastTypeOf(last) === "destroy" && last.state === "succeeded";
}

export function nothingToDestroy(view: StackView): StackPlan | undefined {
  return isDeleting(view) && isNothingDeployed(view) ? removeFinalizer(view, { nothingDeployed: true }) : undefined;
}

export const isNothingDeployed = (view: StackView): boolean => hasNeverRun(view) || hasOnlyPreviewed(view);

function hasNeverRun({ stack, updates }: StackView): boolean {
  const { lastUpdate, currentUpdate, projectInfo } = stack.status ?? {};
  return !lastUpdate && !currentUpdate && !projectInfo && updates.length === 0;
}

/** The previewed Pulumi stack may belong to another Stack, so it must not be destroyed. */
function hasOnlyPreviewed({ stack, updates }: StackView): boolean {
  return stack.status?.deployed === false && updates.every((update) => isFinished(update) && update.type === "preview");
}

/** The Workspace is deleted with the Stack, and an Update that runs in it would be interrupted. */
function removeFinalizer(
  { otherUpdate, now }: StackView,
  { nothingDeployed }: { nothingDeployed: boolean },
): StackPlan {
  if (otherUpdate === undefined) {
    return { steps: [{ kind: "removeFinalizer", nothingDeployed }], outcome: unchanged };
  }
  const outcome = processing(messages.workspaceInUse(otherUpdate), messages.endOfUpdate(otherUpdate));
  return wait(outcome, now + workspaceInUseMs);
}

export function finalizerMissing(view: StackView): StackPlan | undefined {
  if (hasFinalizer(view) || isDeleting(view)) return undefined;
  return { steps: [{ kind: "addFinalizer" }], outcome: unchanged };
}

/** The destroy is due, and needs a source that is not available. */
export function destroySourceMissing(view: StackView): StackPlan | undefined {
  const spec = validSpec(view);
  const { source } = view;
  if (!isDeleting(view) || !spec || destroyDue(view, spec).kind !== "now") return undefined;
  if (destroyOrigin(view, spec) || source.kind === "ready") return undefined;
  if (source.kind === "pending") return wait(processing(messages.waitingForDestroySource(source.what), source.what));
  const outcome = stalled("SourceUnavailable", messages.destroyNeedsProgram(source.message));
  return wait(outcome, recheckAt(view, "SourceUnavailable"));
}

/**
 * The source if it is available. Otherwise the recorded name and runtime of the project are enough to destroy from the
 * state, unless the program has to run. Undefined if neither is available.
 */
export function destroyOrigin(view: StackView, spec: NormalStack): WorkspaceOrigin | undefined {
  const { source, workspace } = view;
  const { projectInfo } = view.stack.status ?? {};
  const isWithoutSource = workspace.kind === "present" && workspace.object.spec?.projectInfo !== undefined;
  const isFailed = workspace.kind === "present" && workspace.state.kind === "failed";
  if (projectInfo && !spec.runProgramOnDestroy && (isWithoutSource || isFailed || source.kind === "unavailable")) {
    return { projectInfo };
  }
  return source.kind === "ready" ? source.spec : undefined;
}
