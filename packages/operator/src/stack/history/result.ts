/** From a finished Update to what the Stack's status records of it. Pure. */
import type { JsonValue, LastUpdate, ProjectInfo, Stack, StackStatus } from "@pko/api";
import { timestamp } from "@pko/kube";

import { parsePastTimestamp } from "../../shared/parse-timestamp.ts";
import {
  hasPlan,
  isFinished,
  lastUpdateIn,
  presentStatus,
  withdrawnFailure,
  type OutputsView,
  type StackView,
  type UpdateFacts,
} from "../view.ts";
import { correctionRecord, type DriftRecord } from "./drift.ts";
import { isSameTrigger, lastTypeOf, type Trigger } from "./trigger.ts";

export interface Result {
  readonly update: UpdateFacts;
  readonly lastUpdate: LastUpdate;
  readonly projectInfo?: ProjectInfo;
  /** Whether anything may have been changed since the Stack was created; absent if unknown. */
  readonly deployed?: boolean;
  /** Masked. Absent if they are not known to have changed. */
  readonly outputs?: NonNullable<StackStatus["outputs"]>;
  /** Present if it has corrected known drift. */
  readonly drift?: DriftRecord;
}

type History = Pick<StackView, "stack" | "updates">;

/** The next Update to be recorded, if any. */
export function unrecordedUpdate(view: History): UpdateFacts | undefined {
  const last = view.stack.status?.lastUpdate;
  const updates = view.updates.filter(({ isDriftCheck }) => !isDriftCheck);
  // A status that was lost is restored from the latest Update.
  if (!last) return updates.findLast(hasResult);
  const isNew = (update: UpdateFacts): boolean => hasResult(update) && update.hasFinalizer && update.name !== last.name;
  return updates.find((update) => isNew(update) && !wasRecordedByOtherOperator(view.stack, update));
}

/** A plan that was made is not the result of an update. One that could not be made is: it is retried with backoff. */
const hasResult = (update: UpdateFacts): boolean => isFinished(update) && !hasPlan(update);

/** Updates whose result is in the status, so nothing depends on them. */
export function recordedUpdates(view: History): UpdateFacts[] {
  const { lastUpdate, approval } = presentStatus(view);
  const isRecorded = (update: UpdateFacts): boolean =>
    hasPlan(update) ? approval?.updateName === update.name : isFinished(update) && lastUpdate?.name === update.name;
  return view.updates.filter(
    (update) => update.hasFinalizer && (isRecorded(update) || wasRecordedByOtherOperator(view.stack, update)),
  );
}

/** It has no trigger, and is not the one that the status shows as running. The finalizer was left over. */
function wasRecordedByOtherOperator({ status }: Stack, update: UpdateFacts): boolean {
  if (!status?.lastUpdate || update.trigger || !isFinished(update)) return false;
  return status.currentUpdate?.name !== update.name;
}

/** The Update whose outputs could not be written when its result was recorded. */
export function updateWithPendingOutputs({ stack, updates }: History): UpdateFacts | undefined {
  const { name, outputsPending } = stack.status?.lastUpdate ?? {};
  return outputsPending ? updates.find((update) => update.name === name) : undefined;
}

export function resultToRecord(view: StackView, update: UpdateFacts): Result {
  const deployed = deployedAfter(view, update);
  const drift = correctionRecord(view, update);
  return {
    update,
    lastUpdate: lastUpdateAfter(view, update),
    ...(deployed !== undefined && { deployed }),
    ...(update.projectInfo && { projectInfo: update.projectInfo }),
    ...(view.outputs.kind === "read" && { outputs: maskedOutputs(view.outputs.values) }),
    ...(drift && { drift }),
  };
}

function lastUpdateAfter(view: StackView, update: UpdateFacts): LastUpdate {
  const trigger = triggerOf(view, update);
  return {
    name: update.name,
    type: update.isPlan ? trigger.type : update.type,
    ...triggerFields(trigger),
    ...attemptFields(view, update, trigger),
    lastResyncTime: timestamp(endTime(view, update)),
    ...reportFields(update),
  };
}

function triggerFields({ generation, revision, digest, reconcileRequest, inputs }: Trigger): Partial<LastUpdate> {
  return {
    generation,
    ...(reconcileRequest && { reconcileRequest }),
    ...(inputs && { inputs }),
    lastAttemptedCommit: revision,
    ...(digest && { digest }),
  };
}

/** Whether it succeeded, and what remains from the attempts before it. */
function attemptFields(view: StackView, update: UpdateFacts, trigger: Trigger): Partial<LastUpdate> {
  const before = lastUpdateIn(view);
  if (update.state === "succeeded") {
    const outputsPending = update.type === "up" && isBlocked(view);
    const lastSuccessfulCommit = trigger.revision;
    return { state: "succeeded", lastSuccessfulCommit, failures: 0, ...(outputsPending && { outputsPending }) };
  }
  const lastSuccessfulCommit = before?.lastSuccessfulCommit;
  const isCounted = update.failure !== withdrawnFailure;
  return {
    state: "failed",
    ...(lastSuccessfulCommit !== undefined && { lastSuccessfulCommit }),
    failures: previousFailures(before, trigger) + (isCounted ? 1 : 0),
  };
}

function reportFields({ failure, message, warning, permalink, report }: UpdateFacts): LastUpdate {
  return {
    ...(failure && { failure }),
    ...(message && { message }),
    ...(warning && { warning }),
    ...(permalink && { permalink }),
    ...report,
  };
}

/** Another owner's Secret has the name of the Update's, or of the Stack's. */
const isBlocked = ({ outputs, occupiedOutputs }: StackView): boolean =>
  occupiedOutputs !== undefined || (outputs.kind === "lost" && outputs.occupant !== undefined);

/** A Stack that has only run previews has deployed nothing, even if the Pulumi stack has resources: of another Stack. */
export function deployedAfter(view: StackView, update: UpdateFacts): boolean | undefined {
  const { deployed, lastUpdate: before } = presentStatus(view);
  const isPreview = update.isPlan || update.type === "preview";
  if (!isPreview && update.failure !== withdrawnFailure) return true;
  // The Go operator does not record whether it has deployed anything.
  return deployed ?? (before || !isPreview ? undefined : false);
}

/** The trigger of an Update that another operator created is in the Stack's status. */
function triggerOf(view: StackView, update: UpdateFacts): Trigger {
  if (update.trigger) return update.trigger;
  const { currentUpdate, observedReconcileRequest } = presentStatus(view);
  const known = currentUpdate?.name === update.name ? currentUpdate : undefined;
  return {
    type: "up",
    generation: known?.generation ?? 0,
    revision: known?.commit ?? "",
    reconcileRequest: known?.reconcileRequest ?? observedReconcileRequest ?? "",
    inputs: "",
  };
}

/**
 * At least a second after the previous end, since the next Update is named after this time. Never in the future, even if the clock of
 * the pod's node is ahead: a time that counts as unknown would cause the next update at once, and again after it.
 */
function endTime(view: StackView, update: UpdateFacts): number {
  const before = parsePastTimestamp(lastUpdateIn(view)?.lastResyncTime, view.now);
  const end = Math.min(update.endedAt ?? view.now, view.now);
  return before === undefined ? end : Math.max(end, before + 1000);
}

/** In a row, for the same trigger. */
function previousFailures(before: LastUpdate | undefined, trigger: Trigger): number {
  if (!before || before.state === "succeeded" || lastTypeOf(before) !== trigger.type) return 0;
  return isSameTrigger(before, trigger) ? (before.failures ?? 0) : 0;
}

const maskedValue = "[secret]";
const longestOutput = 16_384;
const longestOutputs = 131_072;

/** Values that are too long for the status are only in the Secret with the outputs. */
function maskedOutputs(values: Extract<OutputsView, { kind: "read" }>["values"]): Record<string, JsonValue> {
  let room = longestOutputs;
  const shown = values.map(({ name, secret, value }): [string, JsonValue] => {
    const length = secret ? 0 : JSON.stringify(value).length;
    if (length > longestOutput || length > room) return [name, "[too long]"];
    room -= length;
    return [name, secret ? maskedValue : value];
  });
  return Object.fromEntries(shown);
}
