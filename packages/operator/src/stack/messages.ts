/** The texts of the rules: what conditions, events and Updates of a Stack report. Pure: from data to text. */
import {
  approvalKind,
  ignoreWindowsUntilAnnotation,
  leaseName,
  reconcileRequestAnnotation,
  suspendAnnotation,
  type ApprovalRequest,
  type LastUpdate,
  type Stack,
  type WindowState,
} from "@pko/api";
import { timestamp } from "@pko/kube";

import { missingKey, missingObject } from "../shared/missing-input.ts";
import { stackOutputsSecretOf } from "../shared/output-keys.ts";
import { lastTypeOf, type Trigger, type TriggerReason } from "./history/trigger.ts";
import type { PrerequisiteView, Suspender, UpdateView } from "./view.ts";

type NamedUpdate = Pick<UpdateView, "type" | "name"> & Partial<Pick<UpdateView, "isPlan">>;

/** A plan for a destroy destroys nothing. */
const operation = ({ type, isPlan = false }: Omit<NamedUpdate, "name">): string => (isPlan ? "preview" : type);

const reasons: Readonly<Record<TriggerReason, string>> = {
  first: "the first update",
  generation: "the changed spec",
  revision: "the new revision",
  request: "the reconcile request",
  inputs: "changed outputs of other Stacks, or changed values of Secrets and ConfigMaps",
  retry: "a retry",
  resync: "the periodic resync",
  drift: "the correction of drift",
  destroy: "the deletion of the Stack",
};

/** What an update runs for. */
export function purpose({ reason, trigger }: { reason: TriggerReason; trigger: Trigger }): string {
  if (reason === "drift" && trigger.type === "refresh") return driftCheck;
  return reason === "revision" ? `${reasons[reason]} ${trigger.revision}` : reasons[reason];
}

export const retry = "a retry";
export const periodicResync = "the periodic resync";
export const driftCheck = "the check for drift";
export const retryTime = (at: number): string => `\nIt will be retried at ${timestamp(at)}.`;

// Results

export function succeeded({ type, name }: NamedUpdate, { summary, warning }: LastUpdate): string {
  const result = summary ? `The ${type} ${name} succeeded: ${summary}.` : `The ${type} ${name} succeeded.`;
  return warning ? `${result} Warning: ${warning}.` : result;
}

export function upToDate(last: LastUpdate, warnings: readonly string[]): string {
  const what = lastTypeOf(last) === "preview" ? "The last preview succeeded" : "The last update succeeded";
  const result = last.summary ? `${what}: ${last.summary}.` : `${what}.`;
  return [result, ...warnings.map((warning) => `Warning: ${warning}.`)].join(" ");
}

const failedUpdate = (last: LastUpdate): string => `The ${lastTypeOf(last)} ${last.name ?? ""} failed`.trim();
export const noError = "no error message was reported";
const errorOf = ({ message }: LastUpdate): string => message ?? noError;

/** Which attempt failed: nothing for the first, unless the number of attempts is limited. */
function attempt({ failures = 1 }: LastUpdate, maxFailures: number | undefined): string {
  if (maxFailures !== undefined) return ` (attempt ${failures} of ${maxFailures})`;
  return failures > 1 ? ` for the ${ordinal(failures)} time in a row` : "";
}

export const failed = (last: LastUpdate, maxFailures?: number): string =>
  `${failedUpdate(last)}${attempt(last, maxFailures)}: ${errorOf(last)}`;

export const failedByConflict = (last: LastUpdate, maxFailures?: number): string =>
  `${failedUpdate(last)}${attempt(last, maxFailures)}, because another update of the Pulumi stack is running: ${errorOf(last)}`;

export const retriesExhausted = (last: LastUpdate, maxFailures: number): string =>
  `${failedUpdate(last)} ${last.failures ?? 1} of ${maxFailures} times, so it is not retried: ${errorOf(last)}\n` +
  `It will be retried when the spec${lastTypeOf(last) === "destroy" ? "" : " or the source"} changes, or when you set the annotation ${reconcileRequestAnnotation} of the Stack to a new value.`;

export const cancelled = (last: LastUpdate): string =>
  `The ${lastTypeOf(last)} ${last.name ?? ""} was cancelled, as requested: ${errorOf(last)}\n` +
  "It will be retried when an update is requested, or when the spec or the source changes.";

function ordinal(count: number): string {
  const endings: Readonly<Record<number, string>> = { 1: "st", 2: "nd", 3: "rd" };
  const ending = count % 100 >= 11 && count % 100 <= 13 ? "th" : (endings[count % 10] ?? "th");
  return `${count}${ending}`;
}

export const destroyed = "The resources have been destroyed.";
export const specChanged = "The spec has changed; the next update is being prepared.";

// Outputs

export const outputsNotWritten = (updateName: string, why: string): string =>
  `The update ${updateName} succeeded, but its outputs were not written. ${why}`;

export const outputsSecretMissing = (secretName: string): string =>
  `Secret ${secretName} with the outputs of the Update does not exist.`;

export const outputsRejected = (secretName: string, explanation: string): string =>
  `The outputs could not be written to ${secretName}: ${explanation}`;

export const updateDeleted = (name: string): string => `Update ${name} no longer exists.`;

export function outputsLost(updateName: string, { why, isBlocked }: { why: string; isBlocked: boolean }): string {
  const request = `set the annotation ${reconcileRequestAnnotation} of the Stack to a new value`;
  const remedy = isBlocked
    ? `Delete or rename it; then, to request an update that writes the outputs, ${request}.`
    : `The next update writes them; to request one now, ${request}.`;
  return `The update ${updateName} succeeded, but its outputs were not stored. ${why} ${remedy}`;
}

// Approvals

export const notPlanned = (why: string): string => `The changes could not be planned: ${why}`;
export const noPlan = "the preview succeeded, but kept no plan";

export const planCleared = ({ updateName }: ApprovalRequest): string =>
  `The plan of Update ${updateName} needs no approval and is being applied.`;

export const approvalOf = (updateName: string): string => `an Approval of the plan of Update ${updateName}`;

/** Replacements and deletions first. */
function planText({ summary, unknownInputs = 0 }: ApprovalRequest): string {
  if (unknownInputs === 0) return summary;
  const [values, are] = unknownInputs === 1 ? ["value", "is"] : ["values", "are"];
  return `${summary}\n${unknownInputs} input ${values} ${are} known only while the plan is applied.`;
}

export function awaitingApproval({ metadata }: Stack, request: ApprovalRequest): string {
  const { name = "", namespace = "" } = metadata;
  return [
    `The changes must be approved before ${request.expiresAt}:`,
    planText(request),
    `To approve them: kubectl pulumi approve ${name} --namespace ${namespace}`,
    "Or, without the plugin:",
    "kubectl create -f - <<EOF",
    JSON.stringify(approvalManifest(namespace, request)),
    "EOF",
  ].join("\n");
}

/** The shell inserts the name of the user, which the API server compares with the user of the request. */
function approvalManifest(namespace: string, { updateName, updateUid, digest }: ApprovalRequest): object {
  const { apiVersion, kind } = approvalKind;
  const decidedBy = "$(kubectl auth whoami --output jsonpath={.status.userInfo.username})";
  const spec = { updateName, updateUid, digest, decision: "Approve", decidedBy };
  return { apiVersion, kind, metadata: { generateName: `${updateName}-`, namespace }, spec };
}

/** For the event, which is short. */
export const approvalRequested = (request: ApprovalRequest): string =>
  `The plan of Update ${request.updateName} must be approved before ${request.expiresAt}:\n${planText(request)}`;

function decidedBy({ decidedBy: user = "an unknown user", reason }: ApprovalRequest): string {
  return reason ? `by ${user}: ${reason}` : `by ${user}`;
}

export const approved = (request: ApprovalRequest): string =>
  `The plan of Update ${request.updateName} was approved ${decidedBy(request)}`;

export const rejected = (request: ApprovalRequest): string =>
  `The plan of Update ${request.updateName} was rejected ${decidedBy(request)}\n` +
  "It is not applied. A new plan is made when the spec, the source or an input changes; to request one now, " +
  `set the annotation ${reconcileRequestAnnotation} of the Stack to a new value.`;

export const requestExpired = ({ updateName, expiresAt }: ApprovalRequest): string =>
  `The plan of Update ${updateName} expired at ${expiresAt}, before it was applied; a new plan is being made.`;

export const requestSuperseded = ({ updateName }: ApprovalRequest): string =>
  `The plan of Update ${updateName} was not applied, because the spec, the source or an input has changed, or its Update was deleted.`;

const policyRemedy =
  "Install the policy that is part of the Helm chart and of the quickstart manifest. This is checked again every minute.";

export const policyMissing =
  "The Stack requires approvals, but users can create Approvals in the name of others: the admission policy for Approvals " +
  `is not in force. Nothing is started. ${policyRemedy}`;

export const policyUnverified = (why: string): string =>
  "The Stack requires approvals, but the operator cannot check whether the admission policy for Approvals is in force: " +
  `${why}. Nothing is started. Allow the operator to create Approvals; it does so only in dry runs. ${policyRemedy}`;

export const newPlan = "a new plan, when this one expires";

// Running updates

export const endOfUpdate = (name: string): string => `the end of Update ${name}`;

export const starting = (update: NamedUpdate, what: string): string =>
  `The ${operation(update)} ${update.name} is being started for ${what}.`;

export const cancelling = (update: NamedUpdate): string =>
  `The ${operation(update)} ${update.name} is being cancelled, as requested.`;

export const withdrawing = (update: NamedUpdate, reason: string): string =>
  `The ${operation(update)} ${update.name} has not started and is being withdrawn, because ${reason}.`;

export const withdrawalReasons = {
  stackDeleted: "the Stack is being deleted",
  stackProtected: "the Stack is protected",
  destroyDisabled: "destroyOnFinalize is no longer set",
  suspended: "nothing may start while the Stack is suspended",
  windowClosed: "no update window is open",
  workspaceMissing: "its Workspace no longer exists",
  superseded: "its Workspace is not ready and a newer update is due",
} as const;

/** What happens when the running update ends. */
export type AfterUpdate = "nothing" | "suspend" | "destroy" | "delete" | "keep";

function afterwards({ name }: NamedUpdate, after: AfterUpdate): string {
  switch (after) {
    case "nothing":
      return "";
    case "suspend":
      return "; nothing starts when it ends, because the Stack is suspended";
    case "destroy":
      return "; the resources will be destroyed when it ends";
    case "keep":
      return "; the Stack is being deleted, but it is protected, so nothing will be destroyed";
    case "delete":
      return `; the Stack will be deleted when it ends, and its resources are kept; to cancel it, delete Update ${name}`;
  }
}

export const stuck = (update: UpdateView, after: AfterUpdate): string =>
  `The ${operation(update)} ${update.name} is stuck${afterwards(update, after)}. ${update.stall?.message ?? ""}`;

export function running(update: UpdateView, after: AfterUpdate): string {
  return `The ${operation(update)} ${update.name} ${progress(update)}${afterwards(update, after)}.`;
}

function progress({ deleting, startedAt }: UpdateView): string {
  if (deleting) return "is being cancelled";
  return startedAt === undefined ? "is waiting for its Workspace" : `has been running since ${timestamp(startedAt)}`;
}

// Deletion

/** A deletion cannot be reverted, so the message shows how to finish it in both ways. */
export function deletionProtected(wantsDestroy: boolean): string {
  const remedy = wantsDestroy
    ? "To destroy its resources and delete the Stack, set spec.protect to false; to keep them, set spec.destroyOnFinalize to false first."
    : "To delete the Stack and keep its resources, set spec.protect to false.";
  return `The Stack is being deleted although spec.protect is true, so nothing is destroyed and the Stack is kept. ${remedy}`;
}

// Drift

export const noDrift = "The resources match the state.";

interface DetectedDrift {
  readonly count: number;
  readonly summary: string;
  /** Whether an update corrects it. */
  readonly isCorrected: boolean;
  /** The correction of the same drift before this check. */
  readonly corrected?: { readonly updateName: string; readonly time: string };
}

export function driftDetected({ count, summary, isCorrected, corrected }: DetectedDrift): string {
  const what = count === 1 ? "1 resource differs from the state" : `${count} resources differ from the state`;
  const next = isCorrected
    ? "An update with a refresh corrects this."
    : "Nothing was changed; to correct it, set driftDetection.action to Correct, or run an update with a refresh.";
  return [`${what}: ${summary}.`, ...(corrected ? [driftAgain(corrected)] : []), next].join(" ");
}

const driftAgain = ({ updateName, time }: NonNullable<DetectedDrift["corrected"]>): string =>
  `Update ${updateName} corrected the same at ${time}: something else changes these resources again, or the program does not set these properties.`;

export const driftCorrected = (updateName: string): string =>
  `Update ${updateName} refreshed the state, so that it matches the resources.`;

export function driftCheckFailed(why: string, retryAt: number | undefined): string {
  const problem = `The check for drift failed: ${why}`;
  return retryAt === undefined ? problem : `${problem}${retryTime(retryAt)}`;
}

export const nameTaken = "another owner's object has a name that it needs";

export const stoppingCheck = (name: string, why: string): string =>
  `The check for drift ${name} is being stopped, because ${why}.`;

export const checkObstacles = {
  stackDeleted: "the Stack is being deleted",
  specInvalid: "the spec is invalid",
  updateDue: "an update is due",
} as const;

// Suspension and update windows

export const endOfSuspension = "the end of the suspension";
export const resumed = "The Stack is no longer suspended.";

const suspenders: Readonly<Record<Suspender, string>> = {
  stack: "spec.suspend is true",
  operator: "the operator is suspended",
};

const resumptions: Readonly<Record<Suspender, string>> = {
  stack: "set spec.suspend to false",
  operator: `remove the annotation ${suspendAnnotation} from Lease ${leaseName} in the operator's namespace`,
};

export function suspended(by: readonly Suspender[], next: "update" | "destroy"): string {
  const effect = next === "destroy" ? "its resources are not destroyed and it is not deleted" : "nothing starts";
  const why = by.map((each) => suspenders[each]).join(" and ");
  const remedy = by.map((each) => resumptions[each]).join(", and ");
  return `The Stack is suspended, because ${why}: ${effect}. To resume it, ${remedy}.`;
}

type Closed = Exclude<WindowState, { kind: "open" }>;

export const dueUpdate = (due: { reason: TriggerReason; trigger: Trigger }): string =>
  `the ${due.trigger.type} for ${purpose(due)}`;

/** `invalidOverride`: the value of the annotation, if it is not a time. */
export function outsideWindow(
  due: { reason: TriggerReason; trigger: Trigger },
  state: Closed,
  invalidOverride: string | undefined,
): string {
  const annotation = `the annotation ${ignoreWindowsUntilAnnotation}`;
  const example = "a time until which update windows are ignored, such as 2030-01-31T18:00:00Z";
  const remedy =
    invalidOverride === undefined
      ? `To start it earlier, set ${annotation} of the Stack to ${example}.`
      : `The value ${JSON.stringify(invalidOverride)} of ${annotation} is ignored: set it to ${example}.`;
  return `The ${due.trigger.type} for ${purpose(due)} is due, but no update window is open. ${nextOpening(state)} ${remedy}`;
}

function nextOpening(state: Closed): string {
  if (state.kind === "never") return "None will open again.";
  const { opensAt, timeZone } = state;
  const local = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "short" }).format(opensAt);
  const zoned = timeZone === "UTC" ? "" : ` (${local} in ${timeZone})`;
  return `The next one opens at ${timestamp(opensAt)}${zoned}.`;
}

// Spec, inputs and source

export const dependencyCycle = (cycle: readonly string[]): string =>
  `Stacks depend on each other: ${cycle.join(" → ")}; remove one of the prerequisites or StackOutput references`;

export const missingInputs = (problems: readonly string[], everyMs: number): string =>
  `${problems.join("; ")}; this is checked again every ${everyMs / 1000} seconds`;

export interface InputReference {
  readonly kind: "secret" | "configMap";
  readonly name: string;
  readonly key?: string;
  /** The field that refers to it. */
  readonly user: string;
}

const inputObject = ({ kind, name }: InputReference): string => `${kind === "secret" ? "Secret" : "ConfigMap"} ${name}`;

export const inputMissing = (reference: InputReference): string =>
  missingObject(inputObject(reference), reference.user);

export const inputKeyMissing = (reference: InputReference): string =>
  missingKey(inputObject(reference), { key: reference.key ?? "", user: reference.user });

export const inputNotJson = (reference: InputReference): string =>
  `the key ${reference.key} of the ${inputObject(reference)} is not valid JSON, which ${reference.user} needs`;

export const validSpec = "a valid spec";
export const waitingForSource = (what: string): string => `Waiting for ${what}.`;
export const waitingForDestroySource = (what: string): string => `The destroy waits for ${what}.`;
export const firstCheck = (repository: string): string => `the first check of the repository ${repository}`;
export const repositoryFailed = (repository: string, message: string): string =>
  `the repository ${repository}: ${message}`;

export const destroyNeedsProgram = (problem: string): string =>
  `${problem}; the destroy needs the program, because the name and runtime of the project are not known or runProgram is set`;

// Dependents

export const dependentsDeleting = (names: readonly string[]): string =>
  `${stackNames(names)} ${isOrAre(names)} being deleted and may need this Stack, which waits until then.`;

export const dependentsLive = ({ names, proceedAt }: { names: readonly string[]; proceedAt: number }): string =>
  `${stackNames(names)} ${dependOrDepends(names)} on this Stack and ${isOrAre(names)} not being deleted. ` +
  `The deletion continues without waiting for ${names.length === 1 ? "it" : "them"} at ${timestamp(proceedAt)}.`;

export const dependentsIgnored = (names: readonly string[]): string =>
  `${stackNames(names)} ${dependOrDepends(names)} on this Stack and ${isOrAre(names)} not being deleted; ` +
  "its resources are destroyed nevertheless.";

export const dependentsInCycle = (names: readonly string[]): string =>
  `This Stack and ${stackNames(names)} depend on each other, so they are destroyed in any order.`;

const isOrAre = (names: readonly string[]): string => (names.length === 1 ? "is" : "are");
const dependOrDepends = (names: readonly string[]): string => (names.length === 1 ? "depends" : "depend");

// Prerequisites

export const prerequisitesUnmet = (problems: readonly string[]): string => `${problems.join("; ")}.`;
export const stackNames = (names: readonly string[]): string => names.map((name) => `Stack ${name}`).join(", ");

export const prerequisiteMissing = (name: string): string => `there is no Stack ${name}`;
export const prerequisiteDeleting = (name: string): string => `Stack ${name} is being deleted`;
export const prerequisiteNotDeployed = (name: string): string => `Stack ${name} has not succeeded yet`;
export const prerequisiteOutdated = (name: string): string =>
  `Stack ${name} was changed, or an update of it was requested, and it has not run since`;
export const prerequisiteFailed = (name: string): string => `the last update of Stack ${name} failed`;
export const prerequisiteOnlyPreviewed = (name: string): string =>
  `Stack ${name} was only previewed and has to be deployed`;

export function prerequisiteTooOld({ name, endedAt }: PrerequisiteView): string {
  const ended = endedAt === undefined ? "at an unknown time" : `at ${timestamp(endedAt)}`;
  return `Stack ${name} last succeeded ${ended}, which is too long ago; another update of it is requested`;
}

export const outputNeeded = (problem: string, output: string): string =>
  `${problem}, and its output ${output} is needed`;

export const outputsSecretForeign = (name: string, output: string): string =>
  `Secret ${stackOutputsSecretOf(name)} does not belong to Stack ${name}, whose output ${output} is needed`;

const mostOutputNames = 20;

export function outputMissing(name: string, output: string, others: readonly string[]): string {
  const known = others.length > 0 ? `it has ${others.slice(0, mostOutputNames).join(", ")}` : "it has no outputs";
  return `Stack ${name} has no output ${output}: ${known}`;
}

export function outputsNotStored(name: string, output: string, isRequested: boolean): string {
  const message = `the outputs of Stack ${name} were not stored, and its output ${output} is needed`;
  return isRequested
    ? message
    : `${message}; to run it, set its annotation ${reconcileRequestAnnotation} to a new value`;
}

// Workspace

export const workspaceName = (name: string): string => `Workspace ${name}`;
export const deletionOfWorkspace = (name: string): string => `the deletion of ${workspaceName(name)}`;

export const workspaceDeleting = (name: string): string =>
  `${workspaceName(name)} is being deleted; a new one will be created.`;

export const workspacePreparing = (name: string, what: string, progress?: string): string =>
  `${workspaceName(name)} is being prepared for ${what}${progress === undefined ? "." : `: ${progress}`}`;

export const workspaceFailed = (name: string, message: string): string =>
  `${workspaceName(name)} cannot be prepared: ${message}`;

export const workspaceNotObserved = "its spec has not been observed yet.";
export const workspaceNotReady = "it is not ready yet.";

export const workspaceReclaimed = "The Workspace is deleted, because workspaceReclaimPolicy is Delete.";

// Writes

export const garbageCollector = "the garbage collector";
export const namespaceTerminating = "The namespace is being deleted, so nothing new can be created in it";
export const writeRejected = (explanation: string): string => `The API server rejected a request: ${explanation}`;

export const workspaceInUse = (updateName: string): string =>
  `The Stack is not deleted yet, because Update ${updateName} runs in its Workspace; to cancel it, delete Update ${updateName}.`;
