/** The state of a Stack in a line. Pure. */
import {
  stackConditions,
  triggerAnnotation,
  type Condition,
  type LastUpdate,
  type Stack,
  type StackReason,
  type StackSpec,
  type Update,
} from "@pko/api";

import { defined } from "@pko/kube";
import type { StackState, StackSummary, UpdateSummary } from "../documents.ts";
import type { Tone } from "../output/blocks.ts";

export const conditionOf = (
  object: { readonly status?: { readonly conditions?: readonly Condition[] } } | undefined,
  type: string,
): Condition | undefined => object?.status?.conditions?.find((condition) => condition.type === type);

/** The condition that says why the Stack is as it is: Stalled or Reconciling, or else Ready. */
export function decidingCondition(stack: Stack): Condition | undefined {
  return ["Stalled", "Reconciling", "Ready"]
    .map((type) => conditionOf(stack, type))
    .find((condition) => condition !== undefined && (condition.type === "Ready" || condition.status === "True"));
}

const reconcilingStates: Readonly<Record<StackReason<"Reconciling">, StackState>> = {
  StackProcessing: "Working",
  RetryingAfterFailure: "Failing",
  PreviewFailed: "Failing",
  PrerequisiteNotSatisfied: "Waiting",
  AwaitingApproval: "Waiting",
  Suspended: "Waiting",
  OutsideUpdateWindow: "Waiting",
  WaitingForDependents: "Waiting",
};

const isReconcilingReason = (reason: string): reason is StackReason<"Reconciling"> =>
  reason in stackConditions.Reconciling;

export function stateOf(stack: Stack): StackState {
  const condition = decidingCondition(stack);
  if (!condition) return "Unknown";
  if (condition.type === "Stalled") return "Failing";
  if (condition.type === "Reconciling") {
    return isReconcilingReason(condition.reason) ? reconcilingStates[condition.reason] : "Working";
  }
  if (condition.status !== "True") return "Unknown";
  return conditionOf(stack, "Drifted")?.status === "True" ? "Drifted" : "Ready";
}

export const stateTones: Readonly<Record<StackState, Tone>> = {
  Failing: "bad",
  Waiting: "warning",
  Working: "plain",
  Unknown: "warning",
  Drifted: "warning",
  Ready: "good",
};

const notObserved = "The operator has not processed this Stack yet.";

export function summarizeStack(stack: Stack): StackSummary {
  const { metadata, status } = stack;
  const condition = stateOf(stack) === "Drifted" ? conditionOf(stack, "Drifted") : decidingCondition(stack);
  // A Stack without a spec was created before the API server validated it.
  const spec = stack.spec as StackSpec | undefined;
  return {
    namespace: metadata.namespace ?? "",
    name: metadata.name ?? "",
    stack: spec?.stack ?? "",
    state: stateOf(stack),
    reason: condition?.reason ?? "",
    message: condition?.message ?? notObserved,
    deleting: metadata.deletionTimestamp !== undefined,
    ...(status?.lastUpdate && { lastUpdate: summarizeLastUpdate(status.lastUpdate) }),
    ...(status?.next && { next: { what: status.next.what, time: status.next.time } }),
  };
}

function summarizeLastUpdate(last: LastUpdate): NonNullable<StackSummary["lastUpdate"]> {
  return defined({
    name: last.name,
    type: last.type ?? "up",
    state: last.state ?? "unknown",
    time: last.lastResyncTime,
    summary: last.summary,
    revision: last.lastAttemptedCommit || undefined,
    failures: last.failures || undefined,
    failure: last.failure,
    permalink: last.permalink,
  });
}

const order: readonly StackState[] = ["Failing", "Waiting", "Unknown", "Working", "Drifted", "Ready"];

/** Those that need attention first, then by namespace and name. */
export function byUrgency(a: StackSummary, b: StackSummary): number {
  return (
    order.indexOf(a.state) - order.indexOf(b.state) ||
    a.namespace.localeCompare(b.namespace) ||
    a.name.localeCompare(b.name)
  );
}

export function describeSource(spec: StackSpec): string {
  const { projectRepo, branch, tag, commit, repoDir, fluxSource, programRef, workspaceTemplate } = spec;
  if (projectRepo) {
    const revision = tag ?? branch ?? commit ?? "";
    return [projectRepo, revision, repoDir].filter(Boolean).join(" ");
  }
  if (fluxSource) return `${fluxSource.sourceRef.kind} ${fluxSource.sourceRef.name}`;
  if (programRef) return `Program ${programRef.name}`;
  const dir = workspaceTemplate?.spec?.local?.dir;
  return dir === undefined ? "the workspace template" : `${dir} in the workspace's image`;
}

export function summarizeUpdate({ metadata, spec = {}, status = {} }: Update): UpdateSummary {
  const { startTime, endTime, summary, message, errorClass, permalink } = status;
  return defined({
    namespace: metadata.namespace ?? "",
    name: metadata.name ?? "",
    type: spec.type ?? "",
    stack: spec.stackName ?? "",
    state: updateState(status),
    startTime,
    endTime,
    summary,
    message,
    errorClass,
    // The operator writes: Stack NAMESPACE/NAME: PURPOSE.
    reason: spec.message?.replace(/^Stack \S+: /, "") || undefined,
    revision: revisionIn(metadata.annotations?.[triggerAnnotation]) || undefined,
    permalink,
  });
}

function updateState(status: NonNullable<Update["status"]>): UpdateSummary["state"] {
  if (conditionOf({ status }, "Failed")?.status === "True") return "failed";
  if (conditionOf({ status }, "Complete")?.status === "True") return "succeeded";
  return status.startTime === undefined ? "waiting" : "running";
}

/** From the trigger of an Update. */
function revisionIn(trigger: string | undefined): string | undefined {
  if (trigger === undefined) return undefined;
  try {
    const { revision } = JSON.parse(trigger) as { revision?: unknown };
    return typeof revision === "string" ? revision : undefined;
  } catch {
    return undefined;
  }
}

/** The newest first. */
export function byCreation(a: Update, b: Update): number {
  const created = ({ metadata }: Update): string => metadata.creationTimestamp ?? "";
  return created(b).localeCompare(created(a)) || (b.metadata.name ?? "").localeCompare(a.metadata.name ?? "");
}
