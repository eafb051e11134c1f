/** The state of a Stack in a line. Pure. */
import {
  byCreation,
  byUrgency,
  conditionOf,
  decidingCondition,
  describeSource,
  stateOf,
  triggerAnnotation,
  updateState,
  type LastUpdate,
  type Stack,
  type StackSpec,
  type StackState,
  type Update,
} from "@pko/api";

import { defined } from "@pko/kube";
import type { StackSummary, UpdateSummary } from "../documents.ts";
import type { Tone } from "../output/blocks.ts";

export { byCreation, byUrgency, conditionOf, decidingCondition, describeSource, stateOf };

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

export function summarizeUpdate({ metadata, spec = {}, status = {} }: Update): UpdateSummary {
  const { startTime, endTime, summary, message, errorClass, permalink } = status;
  return defined({
    namespace: metadata.namespace ?? "",
    name: metadata.name ?? "",
    type: spec.type ?? "",
    stack: spec.stackName ?? "",
    state: updateState({ status }),
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
