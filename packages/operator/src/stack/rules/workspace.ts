/** Rules about an update that is due: its Workspace is prepared, then the Update is created. */
import type { StackReason, Workspace } from "@pko/api";

import { ownershipConflict } from "../../shared/objects/ownership.ts";
import type { SourceSpec } from "../../sources/source-view.ts";
import { updateObject } from "../desired/update.ts";
import { classDefaults } from "../desired/class-defaults.ts";
import { isWorkspaceCurrent, workspaceObject, type WorkspaceOrigin } from "../desired/workspace.ts";
import { expiryOf } from "../history/approval.ts";
import { originFor } from "../history/planned-content.ts";
import * as messages from "../messages.ts";
import { processing, stalled, type Outcome } from "../outcome.ts";
import { unchanged, wait, type StackPlan, type Step } from "../steps.ts";
import { isDeleting, isFinished, validSpec, type StackView } from "../view.ts";
import { stageOf } from "./approval.ts";
import { destroyOrigin } from "./deletion/deletion.ts";
import { driftDue } from "./drift/due.ts";
import { nextDue, type DueUpdate } from "./due.ts";
import { blockedBy } from "./ownership.ts";
import { turnOf } from "./slot.ts";
import { inputsMissing } from "./spec.ts";

/** An update, or a drift check. Undefined if none is due, or it has nothing to run. */
function dueUpdate(view: StackView): DueUpdate | undefined {
  const spec = validSpec(view);
  const due = [nextDue(view), driftDue(view)].find((each) => each?.kind === "now");
  if (!spec || !due) return undefined;
  const origin = isDeleting(view) ? destroyOrigin(view, spec) : updateOrigin(view, due);
  return origin && { spec, origin, due };
}

function updateOrigin(view: StackView, due: DueUpdate["due"]): WorkspaceOrigin | undefined {
  const { source } = view;
  return source.kind === "ready" ? originFor(comparedOrigin(source, due), stageOf(view, due)) : undefined;
}

/** If the operator cannot tell whether the revision changes anything, the agent compares it before the Update is created. */
function comparedOrigin({ spec, uncompared }: ReadySource, { reason }: DueUpdate["due"]): SourceSpec {
  const { git, ...others } = spec;
  if (!git || !uncompared || reason !== "revision") return spec;
  return { ...others, git: { ...git, compareWith: uncompared.compareWith } };
}

type ReadySource = Extract<StackView["source"], { kind: "ready" }>;

function workspaceForeign(view: StackView): StackPlan | undefined {
  return view.workspace.kind === "foreign" ? blockedBy(view, view.workspace) : undefined;
}

function workspaceDeleting(view: StackView): StackPlan | undefined {
  const { name = "" } = view.stack.metadata;
  if (view.workspace.kind !== "deleting") return undefined;
  return wait(processing(messages.workspaceDeleting(name), messages.deletionOfWorkspace(name)));
}

/** Something is about to run: a Workspace that is being prepared does not need a slot until it is ready. */
function slotMissing(view: StackView): StackPlan | undefined {
  const { slot, workspace } = view;
  const next = dueUpdate(view);
  if (!next || slot.kind === "held") return undefined;
  const isUnready = workspace.kind === "present" && workspace.state.kind !== "ready";
  if (isUnready && isCurrent(view, next)) return undefined;
  if (slot.kind === "waiting") {
    const message = messages.waitingForSlot(next.due, slot);
    return wait({ kind: "waitingForSlot", message, waitingFor: messages.slotPlace(slot) }, slot.refreshAt);
  }
  return withInputs(view, next, {
    steps: [{ kind: "claimSlot", turn: turnOf(view) }],
    outcome: unchanged,
  });
}

const isCurrent = (view: StackView, next: DueUpdate): boolean =>
  view.workspace.kind === "present" && isWorkspaceCurrent(view.workspace.object, wantedWorkspace(view, next));

function wantedWorkspace({ stack, workspaceClass }: StackView, { spec, origin }: DueUpdate): Workspace {
  const defaults = workspaceClass.kind === "one" ? classDefaults(workspaceClass.spec) : undefined;
  return workspaceObject(stack, spec, { origin, ...(defaults && { defaults }) });
}

/** There is none, or it has another spec. */
function workspaceOutdated(view: StackView): StackPlan | undefined {
  const next = dueUpdate(view);
  if (!next || isCurrent(view, next)) return undefined;
  const { spec, due } = next;
  const wanted = wantedWorkspace(view, next);
  const message = messages.workspacePreparing(spec.name, messages.purpose(due));
  return withInputs(view, next, {
    steps: [{ kind: "applyWorkspace", workspace: wanted }],
    outcome: processing(message, messages.workspaceName(spec.name)),
  });
}

/** Before something runs, the Secrets and ConfigMaps that the spec refers to are checked. */
function withInputs(view: StackView, { spec }: DueUpdate, plan: StackPlan): StackPlan {
  if (!view.missingInputs) return { steps: [{ kind: "checkInputs", spec }], outcome: unchanged };
  return inputsMissing(view) ?? plan;
}

function workspacePreparing(view: StackView): StackPlan | undefined {
  const { workspace } = view;
  const next = dueUpdate(view);
  if (!next || workspace.kind !== "present" || workspace.state.kind !== "preparing") return undefined;
  const { spec, due } = next;
  const message = messages.workspacePreparing(spec.name, messages.purpose(due), workspace.state.message);
  return wait(processing(message, messages.workspaceName(spec.name)));
}

/** The commit of a plan may no longer exist. When the plan expires, another one is made, at the current commit. */
function workspaceFailed(view: StackView): StackPlan | undefined {
  const { workspace, stack } = view;
  if (workspace.kind !== "present" || workspace.state.kind !== "failed") return undefined;
  const next = dueUpdate(view);
  const stage = next && stageOf(view, next.due);
  const expiresAt = stage?.kind === "apply" ? expiryOf(stage.request) : undefined;
  return wait(workspaceFailure(stack.metadata.name ?? "", workspace.state), expiresAt);
}

/** By the reason of the Workspace's condition. */
const stallReasons: Readonly<Record<string, StackReason<"Stalled">>> = {
  IncompatibleConfiguration: "PulumiVersionTooLow",
  NodeLost: "NodeLost",
  OwnershipConflict: ownershipConflict,
  WorkspaceClassConflict: "WorkspaceClassConflict",
  WorkspaceClassLimitExceeded: "WorkspaceClassLimitExceeded",
};

export function workspaceFailure(name: string, state: { readonly reason: string; readonly message: string }): Outcome {
  return stalled(stallReasons[state.reason] ?? "WorkspaceFailed", messages.workspaceFailed(name, state.message));
}

/** Applies to every view. The rules before it leave a due update whose Workspace is ready. */
function workspaceReady(view: StackView): StackPlan {
  const { stack, workspace } = view;
  const next = dueUpdate(view);
  if (!next || workspace.kind !== "present") return wait(unchanged);
  const { spec, due } = next;
  const { trigger, reason } = due;
  const stage = stageOf(view, due);
  const recorded = namesOfRecorded(view);
  const update = updateObject({ stack, spec, workspace: workspace.object, trigger, reason, stage, recorded });
  const { name = "" } = update.metadata;
  const step: Step = { kind: "createUpdate", update, trigger, reason, stage, workspace: workspace.object };
  const isPlan = stage.kind === "plan";
  const message = messages.starting({ type: trigger.type, name, isPlan }, messages.purpose(due));
  return withInputs(view, next, { steps: [step], outcome: processing(message, messages.endOfUpdate(name)) });
}

/** The finalizer of the Stack is removed when the result is recorded. */
const namesOfRecorded = ({ updates }: StackView): string[] =>
  updates.flatMap((update) => (isFinished(update) && !update.hasFinalizer ? [update.name] : []));

/** Of every run, in this order. The last one applies to every view. */
export const workspaceRules = [
  workspaceForeign, // the Workspace has another owner: leave it alone
  workspaceDeleting, // wait until the former Workspace is deleted
  slotMissing, // too many updates are running: wait, before anything is created
  workspaceOutdated, // check the inputs, then apply the Workspace
  workspacePreparing, // wait for the Workspace
  workspaceFailed, // report why the Workspace cannot be prepared
  workspaceReady, // check the inputs, then create the Update: with approvals, first one for the plan, then one that applies it
];
