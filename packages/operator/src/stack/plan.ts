/**
 * What to do next for a Stack. Pure: no I/O, no clock, no log. The first check that has something to say decides.
 *
 *   spec, source, inputs and prerequisites are in order
 *        │                               ┌──────────── a change, a request, a resync, a retry ─────────────┐
 *        ▼                               ▼                                                                │
 *   [update due] ──▶ [Workspace applied] ──▶ [Workspace ready] ──▶ [Update created] ──▶ [running] ──▶ [end noted]
 *                                                                                                          │
 *   [deleted] ── wait for a running Update ──▶ the same way with a destroy ──▶ [succeeded] ──▶ [finalizer gone]
 *
 * Every step is a fact that the next pass sees, so a crash between any two writes only repeats the last one.
 */
import {
  describeProblems,
  reconcileRequestAnnotation,
  stackFinalizer,
  type LastUpdate,
  type NormalStack,
  type Stack,
  type StackReason,
  type Update,
  type Workspace,
} from "@pko/api";
import { assertNever } from "@pko/rpc";

import {
  because,
  conflict,
  destroyDueOf,
  dueOf,
  retryAtOf,
  stalledAfter,
  triggerNow,
  type Due,
  type Why,
} from "./due.ts";
import { conflictPauseMs, ownershipConflict } from "../ownership.ts";
import { blocked, conflictMs } from "./blocked.ts";
import type { Outcome } from "./outcome.ts";
import { unmetOf, type Ask } from "./prerequisites.ts";
import { noted, type Noted } from "./result.ts";
import { isCancelled, timeText, triggerText, typeOf, type Trigger } from "./trigger.ts";
import { updateObject } from "./update-object.ts";
import { isDeleting, lastUpdateOf, specOf, type StackView, type UpdateView } from "./view.ts";
import { isAsWanted, workspaceObject, type WorkspaceOrigin } from "./workspace-object.ts";

export type Step =
  | { readonly kind: "none" }
  | { readonly kind: "addFinalizer" }
  | { readonly kind: "removeFinalizer"; readonly untouched: boolean }
  | { readonly kind: "note"; readonly noted: Noted }
  | { readonly kind: "askPrerequisites"; readonly asks: readonly Ask[] }
  | { readonly kind: "applyWorkspace"; readonly workspace: Workspace }
  | {
      readonly kind: "createUpdate";
      readonly update: Update;
      readonly trigger: Trigger;
      readonly why: Why;
      /** Both must still be as they were seen. */
      readonly workspace: Workspace;
    }
  /** One that is no longer wanted as it is: it has not begun, or a person wants it to stop. */
  /** `resourceVersion`: only if it is still as it was seen. */
  | {
      readonly kind: "withdrawUpdate";
      readonly name: string;
      readonly uid: string;
      readonly resourceVersion?: string;
    }
  | { readonly kind: "deleteWorkspace"; readonly uid: string }
  /** Those of the last update, which could not be written when its end was noted. */
  | { readonly kind: "writeOutputs"; readonly updateName: string };

export interface Plan {
  /** Updates whose end is noted, and which may go now. */
  readonly release: readonly UpdateView[];
  readonly step: Step;
  readonly outcome: Outcome;
  /** When to look again though nothing has changed. */
  readonly lookAt?: number;
}

type Decision = Omit<Plan, "release">;
type Check = (view: StackView) => Decision | undefined;

const checks: readonly Check[] = [
  endUnnoted,
  deletedAndFree,
  deletedWithoutDestroy,
  destroyed,
  nothingToDestroy,
  finalizerMissing,
  updateCancelled,
  updateInVain,
  updateBlocked,
  updateStalled,
  updateRunning,
  specInvalid,
  inCircle,
  deleted,
  sourceUnavailable,
  sourcePending,
];

export function planStack(view: StackView): Plan {
  const release = view.updates.filter(
    (update) => update.held && (isNoted(view, update) || isForgotten(view.stack, update)),
  );
  for (const check of checks) {
    const decision = check(view);
    if (decision) return { release, ...decision };
  }
  return { release, ...planUpdate(view) };
}

const none = { kind: "none" } as const;
const processing = (message: string, waitingFor?: string): Outcome => ({
  kind: "processing",
  message,
  ...(waitingFor !== undefined && { waitingFor }),
});

const isOver = ({ state }: UpdateView): boolean => state !== "running";
const isNoted = (view: StackView, update: UpdateView): boolean =>
  isOver(update) && lastUpdateOf(view)?.name === update.name;
const hasFinalizer = ({ stack }: StackView): boolean => stack.metadata.finalizers?.includes(stackFinalizer) ?? false;

/**
 * Of an operator before this one, and not the one that the status says is under way: that operator has noted its end, and
 * failed to let it go.
 */
function isForgotten({ status }: Stack, update: UpdateView): boolean {
  if (!status?.lastUpdate || update.trigger || !isOver(update)) return false;
  return status.currentUpdate?.name !== update.name;
}

/** The Update whose end is to be noted next, if any. */
export function unnotedOf(view: Pick<StackView, "stack" | "updates">): UpdateView | undefined {
  const last = view.stack.status?.lastUpdate;
  // A status that was lost is taken up again from the last Update.
  if (!last) return view.updates.findLast(isOver);
  const isNews = (update: UpdateView): boolean => isOver(update) && update.held && update.name !== last.name;
  return view.updates.find((update) => isNews(update) && !isForgotten(view.stack, update));
}

function endUnnoted(view: StackView): Decision | undefined {
  const update = unnotedOf(view);
  if (!update) return undefined;
  const result = noted(view, update);
  const { lastUpdate } = result;
  const step: Step = { kind: "note", noted: result };
  return lastUpdate.outputsPending
    ? { step, ...outputsLost(view, lastUpdate) }
    : { step, outcome: outcomeAfter(view, lastUpdate, specOf(view)) };
}

/** What the Stack is like once an update has ended. */
function outcomeAfter(view: StackView, last: LastUpdate, spec: NormalStack | undefined): Outcome {
  if (last.state !== "succeeded") {
    return isCancelled(view.stack, last.name)
      ? cancelledOutcome(last)
      : failedOutcome(last, spec ? retryAtOf(last, spec) : view.now);
  }
  if (isDeleting(view)) return processing("The resources are destroyed.");
  const generation = view.stack.metadata.generation ?? 0;
  if (last.generation !== generation) return processing("The spec has changed; the next update is being prepared.");
  const at = spec?.resync.always ? Date.parse(last.lastResyncTime ?? "") + spec.resync.everyMs : undefined;
  return upToDate(view, last, at);
}

function upToDate({ workspace, source }: StackView, last: LastUpdate, at: number | undefined): Outcome {
  const what = typeOf(last) === "preview" ? "The last preview succeeded" : "The last update succeeded";
  const told = last.summary ? `${what}: ${last.summary}.` : `${what}.`;
  const isReady = workspace.kind === "present" && workspace.state.kind === "ready";
  const warnings = [isReady && workspace.state.warning, source.kind === "ready" && source.warning].filter(Boolean);
  return {
    kind: "upToDate",
    message: [told, ...warnings.map((warning) => `But ${warning}.`)].join(" "),
    ...(at !== undefined && !Number.isNaN(at) && { nextAt: at }),
  };
}

function failedOutcome(last: LastUpdate, retryAt: number): Outcome {
  const words = last.message ?? "it did not say why";
  const what = `The ${typeOf(last)} ${last.name ?? ""} failed`.trim();
  if (last.failure === conflict) {
    return {
      kind: "conflict",
      message: `${what}, because another update of the Pulumi stack is running: ${words}`,
      retryAt,
    };
  }
  const failures = last.failures ?? 1;
  if (failures >= stalledAfter) {
    return {
      kind: "stalled",
      reason: "UpdateFailed",
      message: `${what} for the ${ordinal(failures)} time in a row: ${words}`,
      retryAt,
    };
  }
  return { kind: "retrying", preview: typeOf(last) === "preview", message: `${what}: ${words}`, retryAt };
}

function cancelledOutcome(last: LastUpdate): Outcome {
  const words = last.message ?? "it did not say how it ended";
  const again = "It is tried again when it is requested, or when the spec or the source changes.";
  const message = `The ${typeOf(last)} ${last.name ?? ""} was cancelled, as requested: ${words}\n${again}`;
  return { kind: "stalled", reason: "UpdateFailed", message };
}

function ordinal(count: number): string {
  const endings: Readonly<Record<number, string>> = { 1: "st", 2: "nd", 3: "rd" };
  const ending = count % 100 >= 11 && count % 100 <= 13 ? "th" : (endings[count % 10] ?? "th");
  return `${count}${ending}`;
}

/** Nothing of ours holds it any more. */
function deletedAndFree(view: StackView): Decision | undefined {
  return isDeleting(view) && !hasFinalizer(view) ? { step: none, outcome: { kind: "keep" } } : undefined;
}

/** Said also by a spec that is otherwise invalid. */
const wantsDestroy = ({ stack }: StackView): boolean => {
  const spec: Partial<Stack["spec"]> | undefined = stack.spec;
  // What is previewed may be another Stack's.
  return spec?.destroyOnFinalize === true && spec.preview !== true;
};

function deletedWithoutDestroy(view: StackView): Decision | undefined {
  if (!isDeleting(view) || wantsDestroy(view) || runningOf(view)) return undefined;
  return { step: { kind: "removeFinalizer", untouched: false }, outcome: { kind: "keep" } };
}

function destroyed(view: StackView): Decision | undefined {
  const last = lastUpdateOf(view);
  if (!isDeleting(view) || !last || typeOf(last) !== "destroy" || last.state !== "succeeded") return undefined;
  return { step: { kind: "removeFinalizer", untouched: false }, outcome: { kind: "keep" } };
}

/** No update ever began, or only previews did, so there is nothing of ours. */
function nothingToDestroy(view: StackView): Decision | undefined {
  if (!isDeleting(view) || !(neverRan(view) || hasOnlyPreviewed(view))) return undefined;
  return { step: { kind: "removeFinalizer", untouched: true }, outcome: { kind: "keep" } };
}

function neverRan({ stack, updates }: StackView): boolean {
  const { lastUpdate, currentUpdate, projectInfo } = stack.status ?? {};
  return !lastUpdate && !currentUpdate && !projectInfo && updates.length === 0;
}

/** The Pulumi stack may be that of another Stack, whose changes are previewed here: it is not ours to destroy. */
function hasOnlyPreviewed({ stack, updates }: StackView): boolean {
  return stack.status?.deployed === false && updates.every((update) => isOver(update) && update.type === "preview");
}

/** Before anything that would have to be destroyed one day. */
function finalizerMissing(view: StackView): Decision | undefined {
  if (hasFinalizer(view) || isDeleting(view)) return undefined;
  return { step: { kind: "addFinalizer" }, outcome: { kind: "keep" } };
}

const runningOf = ({ updates }: StackView): UpdateView | undefined => updates.find(({ state }) => state === "running");

function updateCancelled(view: StackView): Decision | undefined {
  const update = runningOf(view);
  if (!update || update.deleting || !isCancelled(view.stack, update.name)) return undefined;
  const { name, uid, type } = update;
  const message = `The ${type} ${name} is being cancelled, as requested.`;
  return { step: { kind: "withdrawUpdate", name, uid }, outcome: processing(message, `the end of Update ${name}`) };
}

/** The Update waits for a Workspace that may never be what it waits for: it would keep the remedy waiting, too. */
function updateInVain(view: StackView): Decision | undefined {
  const update = runningOf(view);
  if (!update || update.startedAt !== undefined || update.deleting) return undefined;
  const why = vanityOf(view, update);
  if (why === undefined) return undefined;
  const { name, uid, type, resourceVersion } = update;
  const message = `The ${type} ${name} has not begun, and is withdrawn, because ${why}.`;
  const step: Step = { kind: "withdrawUpdate", name, uid, resourceVersion };
  return { step, outcome: processing(message, `the end of Update ${name}`) };
}

function vanityOf(view: StackView, update: UpdateView): string | undefined {
  const { workspace } = view;
  if (isDeleting(view) && update.type !== "destroy") return "the Stack is being deleted";
  if (isDeleting(view) && !wantsDestroy(view)) return "the Stack no longer has destroyOnFinalize";
  if (workspace.kind !== "present") return "its Workspace is gone";
  if (workspace.state.kind === "ready" || !isOutdated(view, update)) return undefined;
  return "its Workspace is not ready, and there is something newer to run";
}

function isOutdated(view: StackView, { type, trigger }: UpdateView): boolean {
  const { source, stack } = view;
  const spec = specOf(view);
  if (!trigger || !spec) return false;
  // A destroy has no revision of its own.
  if (type === "destroy") return trigger.generation !== stack.metadata.generation;
  if (source.kind !== "ready") return false;
  return (
    triggerText(triggerNow(view, { spec, revision: source.revision, digest: source.digest })) !== triggerText(trigger)
  );
}

/** The Workspace is tried again by itself. */
function updateBlocked(view: StackView): Decision | undefined {
  const update = runningOf(view);
  const { workspace } = view;
  if (!update || update.startedAt !== undefined || workspace.kind !== "present") return undefined;
  if (workspace.state.kind !== "failed") return undefined;
  return { step: none, outcome: workspaceFailed(workspace.object.metadata.name ?? "", workspace.state) };
}

/** The only reason for which an Update stalls is a node that may be lost. */
function updateStalled(view: StackView): Decision | undefined {
  const update = runningOf(view);
  if (update?.stall === undefined) return undefined;
  const message = `The ${update.type} ${update.name} is stuck${afterwards(view, update)}. ${update.stall}`;
  return { step: none, outcome: { kind: "stalled", reason: "NodeLost", message } };
}

function updateRunning(view: StackView): Decision | undefined {
  const update = runningOf(view);
  if (!update) return undefined;
  const what = `The ${update.type} ${update.name}`;
  return {
    step: none,
    outcome: processing(`${what} ${stateOf(update)}${afterwards(view, update)}.`, `the end of Update ${update.name}`),
  };
}

function afterwards(view: StackView, { type, name }: UpdateView): string {
  if (!isDeleting(view) || type === "destroy") return "";
  return wantsDestroy(view)
    ? "; the resources are destroyed when it has ended"
    : `; the Stack goes when it has ended, and its resources stay; to cancel it, delete Update ${name}`;
}

function stateOf({ deleting, startedAt }: UpdateView): string {
  if (deleting) return "is being cancelled";
  return startedAt === undefined ? "waits for its workspace" : `has been running since ${timeText(startedAt)}`;
}

function specInvalid({ spec }: StackView): Decision | undefined {
  if (spec.ok) return undefined;
  return { step: none, outcome: { kind: "stalled", reason: "SpecInvalid", message: describeProblems(spec.problems) } };
}

function inCircle(view: StackView): Decision | undefined {
  if (view.cycle.length === 0 || isDeleting(view)) return undefined;
  const message = `Stacks wait for each other: ${view.cycle.join(" → ")}; remove one of the prerequisites or StackOutput references`;
  return { step: none, outcome: { kind: "stalled", reason: "SpecInvalid", message } };
}

function deleted(view: StackView): Decision | undefined {
  const spec = specOf(view);
  if (!isDeleting(view) || !spec) return undefined;
  const due = destroyDueOf(view, spec);
  if (due.kind !== "now") return planLater(view, spec, due);
  const origin = destroyOrigin(view, spec);
  if ("outcome" in origin) return origin;
  return missingInputs(view) ?? planWorkspace(view, { spec, origin: origin.origin, due });
}

type Origin = { readonly origin: WorkspaceOrigin };

/** The source if it is there; otherwise what is remembered of the project is enough to destroy from the state. */
function destroyOrigin(view: StackView, spec: NormalStack): Origin | Decision {
  const { source, workspace } = view;
  const { projectInfo } = view.stack.status ?? {};
  const mayForget = projectInfo !== undefined && !spec.runProgramOnDestroy;
  const isWithout = workspace.kind === "present" && workspace.object.spec?.projectInfo !== undefined;
  const isUseless = workspace.kind === "present" && workspace.state.kind === "failed";
  if (mayForget && (isWithout || isUseless || source.kind === "unavailable")) return { origin: { projectInfo } };
  switch (source.kind) {
    case "ready":
      return { origin: source.spec };
    case "pending":
      return { step: none, outcome: processing(`Before the destroy: ${source.what}.`, source.what) };
    case "unavailable": {
      const message = `${source.message}; the destroy needs the program, because its name and runtime are not known or runProgram is set`;
      const outcome: Outcome = { kind: "stalled", reason: "SourceUnavailable", message };
      return { step: none, outcome, lookAt: view.now + recheckMs };
    }
    default:
      return assertNever(source);
  }
}

/** The remedy may be in a Secret: a credential, a host's key, an authority. */
function sourceUnavailable({ source, now }: StackView): Decision | undefined {
  if (source.kind !== "unavailable") return undefined;
  const outcome: Outcome = {
    kind: "stalled",
    reason: "SourceUnavailable",
    message: source.message,
    trouble: source.trouble,
  };
  return { step: none, outcome, lookAt: now + recheckMs };
}

/** After a restart nobody has looked yet: that is no reason to call a Stack not ready. */
function sourcePending(view: StackView): Decision | undefined {
  const { source, stack } = view;
  if (source.kind !== "pending") return undefined;
  const isSeen =
    stack.status?.observedGeneration === stack.metadata.generation && stack.status?.conditions !== undefined;
  return { step: none, outcome: isSeen ? { kind: "keep" } : processing(`Waits for ${source.what}.`, source.what) };
}

function planUpdate(view: StackView): Decision {
  const { source } = view;
  const spec = specOf(view);
  // The checks before have seen to it.
  if (!spec || source.kind !== "ready") return { step: none, outcome: { kind: "keep" } };
  const { revision, digest, aliases } = source;
  const due = dueOf(view, { spec, revision, digest, aliases });
  if (due.kind !== "now") return planLater(view, spec, due);
  return missingInputs(view) ?? prerequisitesUnmet(view) ?? planWorkspace(view, { spec, origin: source.spec, due });
}

function planLater(view: StackView, spec: NormalStack, due: Exclude<Due, { kind: "now" }>): Decision {
  const last = lastUpdateOf(view) ?? {};
  if (due.kind === "retryAt") return { step: none, outcome: failedOutcome(last, due.at), lookAt: due.at };
  const resyncAt = due.kind === "resyncAt" ? due.at : undefined;
  const decision: Decision = {
    step: reclaim(view, spec),
    outcome: last.state === "failed" ? cancelledOutcome(last) : upToDate(view, last, resyncAt),
    ...(resyncAt !== undefined && { lookAt: resyncAt }),
  };
  return last.outputsPending ? writeOutputs(view, last, decision) : decision;
}

/** Nothing else is to be done, and the outputs of the last update are not where others look for them. */
function writeOutputs(view: StackView, last: LastUpdate, decision: Decision): Decision {
  if (decision.step.kind !== "none") return { ...decision, outcome: { kind: "keep" } };
  if (view.outputs.kind !== "read") {
    const { outcome, lookAt = Infinity } = outputsLost(view, last);
    const nextAt = Math.min(lookAt, decision.lookAt ?? Infinity);
    return { ...decision, outcome, ...(Number.isFinite(nextAt) && { lookAt: nextAt }) };
  }
  return { ...decision, step: { kind: "writeOutputs", updateName: last.name ?? "" } };
}

/** Only another run can tell the outputs again. Secrets are not watched, so one that is in the way is read again. */
function outputsLost(view: StackView, last: LastUpdate): Pick<Decision, "outcome" | "lookAt"> {
  const { outputs, now } = view;
  const why = outputs.kind === "lost" ? outputs.message : `Update ${last.name} has expired.`;
  const what = `The outputs of ${last.name} were not kept, though it succeeded. ${why}`;
  const how = `set the annotation ${reconcileRequestAnnotation} of the Stack to another value`;
  const occupant = outputs.kind === "lost" ? outputs.occupant : undefined;
  if (!occupant) {
    const message = `${what} The next update writes them; to request one now, ${how}.`;
    return { outcome: { kind: "stalled", reason: "OutputsLost", message } };
  }
  const message = `${what} Delete or rename it; then, to request an update that writes the outputs, ${how}.`;
  return {
    outcome: { kind: "stalled", reason: ownershipConflict, message },
    lookAt: now + conflictPauseMs([{ kind: "foreign", occupant }], conflictMs(view)),
  };
}

function reclaim({ workspace }: StackView, spec: NormalStack): Step {
  if (spec.workspace.reclaim !== "Delete" || workspace.kind !== "present") return none;
  return { kind: "deleteWorkspace", uid: workspace.object.metadata.uid ?? "" };
}

/** Secrets and ConfigMaps are not watched: one looks again. */
const recheckMs = 15_000;

function missingInputs({ missing, now }: StackView): Decision | undefined {
  if (missing.length === 0) return undefined;
  const message = `${missing.join("; ")}; this is looked at again every ${recheckMs / 1000} seconds`;
  return { step: none, outcome: { kind: "stalled", reason: "SpecInvalid", message }, lookAt: now + recheckMs };
}

function prerequisitesUnmet(view: StackView): Decision | undefined {
  const unmet = unmetOf(view);
  if (unmet.length === 0) return undefined;
  const asks = [...new Map(unmet.flatMap(({ ask }) => (ask ? [[ask.name, ask]] : []))).values()];
  const names = [...new Set(unmet.map(({ name }) => `Stack ${name}`))].join(", ");
  return {
    step: asks.length > 0 ? { kind: "askPrerequisites", asks } : none,
    outcome: {
      kind: "prerequisites",
      message: `${unmet.map(({ message }) => message).join("; ")}.`,
      waitingFor: names,
    },
  };
}

interface Wanted {
  readonly spec: NormalStack;
  readonly origin: WorkspaceOrigin;
  readonly due: Extract<Due, { kind: "now" }>;
}

function planWorkspace(view: StackView, wanted: Wanted): Decision {
  const { workspace, stack } = view;
  const { spec, due } = wanted;
  const name = `Workspace ${spec.name}`;
  const object = workspaceObject(stack, spec, wanted.origin);
  if (workspace.kind === "foreign") return { step: none, ...blocked(view, workspace) };
  if (workspace.kind === "deleting") {
    return { step: none, outcome: processing(`${name} is being deleted; another one follows.`, `the end of ${name}`) };
  }
  if (workspace.kind === "absent" || !isAsWanted(workspace.object, object)) {
    const step: Step = { kind: "applyWorkspace", workspace: object };
    return { step, outcome: processing(`${name} is being prepared for ${because(due)}.`, name) };
  }
  switch (workspace.state.kind) {
    case "preparing": {
      const message = `${name} is being prepared for ${because(due)}: ${workspace.state.message}`;
      return { step: none, outcome: processing(message, name) };
    }
    case "failed":
      return { step: none, outcome: workspaceFailed(spec.name, workspace.state) };
    case "ready":
      return createUpdate(view, wanted, workspace.object);
    default:
      return assertNever(workspace.state);
  }
}

/** By the Workspace's own reason. */
const stallReasons: Readonly<Record<string, StackReason<"Stalled">>> = {
  IncompatibleConfiguration: "PulumiVersionTooLow",
  NodeLost: "NodeLost",
  OwnershipConflict: ownershipConflict,
};

function workspaceFailed(name: string, state: { readonly reason: string; readonly message: string }): Outcome {
  const message = `Workspace ${name} cannot be prepared: ${state.message}`;
  return { kind: "stalled", reason: stallReasons[state.reason] ?? "WorkspaceFailed", message };
}

function createUpdate({ stack }: StackView, { spec, due }: Wanted, workspace: Workspace): Decision {
  const { trigger, why } = due;
  const update = updateObject({ stack, spec, workspace, trigger, why });
  const message = `The ${trigger.type} ${update.metadata.name ?? ""} is being started for ${because(due)}.`;
  const step: Step = { kind: "createUpdate", update, trigger, why, workspace };
  return { step, outcome: processing(message, `the end of Update ${update.metadata.name ?? ""}`) };
}
