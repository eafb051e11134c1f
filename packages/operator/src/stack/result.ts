/** From the end of an Update to what the Stack's status keeps of it. Pure. */
import type { JsonValue, LastUpdate, ProjectInfo, StackStatus } from "@pko/api";

import { withdrawn } from "./due.ts";
import { isSameTrigger, timeOf, timeText, typeOf, type Trigger } from "./trigger.ts";
import { lastUpdateOf, statusOfStack, type OutputsView, type StackView, type UpdateView } from "./view.ts";

export interface Noted {
  readonly update: UpdateView;
  readonly lastUpdate: LastUpdate;
  readonly projectInfo?: ProjectInfo;
  /** Whether anything may have been changed since the Stack was made; absent when that cannot be told. */
  readonly deployed?: boolean;
  /** Masked. Absent when they are not known to have changed. */
  readonly outputs?: NonNullable<StackStatus["outputs"]>;
}

export function noted(view: StackView, update: UpdateView): Noted {
  const deployed = deployedAfter(view, update);
  return {
    update,
    lastUpdate: lastUpdate(view, update),
    ...(deployed !== undefined && { deployed }),
    ...(update.projectInfo && { projectInfo: update.projectInfo }),
    ...(view.outputs.kind === "read" && { outputs: masked(view.outputs.values) }),
  };
}

function lastUpdate(view: StackView, update: UpdateView): LastUpdate {
  const before = lastUpdateOf(view);
  const trigger = triggerOf(view, update);
  const { generation, revision, digest, reconcileRequest, inputs } = trigger;
  const isSuccess = update.state === "succeeded";
  const successful = isSuccess ? revision : before?.lastSuccessfulCommit;
  return {
    name: update.name,
    type: update.type,
    state: isSuccess ? "succeeded" : "failed",
    generation,
    ...(reconcileRequest && { reconcileRequest }),
    ...(inputs && { inputs }),
    lastAttemptedCommit: revision,
    ...(digest && { digest }),
    ...(successful !== undefined && { lastSuccessfulCommit: successful }),
    lastResyncTime: timeText(endOf(view, update)),
    failures: isSuccess ? 0 : failuresOf(before, trigger) + 1,
    ...(isSuccess && update.type === "up" && isOccupied(view.outputs) && { outputsPending: true }),
    ...(update.failure && { failure: update.failure }),
    ...(update.message && { message: update.message }),
    ...(update.permalink && { permalink: update.permalink }),
    ...update.report,
  };
}

/** Where somebody else's Secret has the name of the Update's, its outputs are not known. */
const isOccupied = (outputs: OutputsView): boolean => outputs.kind === "lost" && outputs.occupant !== undefined;

/** A Stack that has only ever previewed has made nothing, though the Pulumi stack may be full: another's, perhaps. */
function deployedAfter(view: StackView, update: UpdateView): boolean | undefined {
  const { deployed, lastUpdate: before } = statusOfStack(view);
  if (update.type !== "preview" && update.failure !== withdrawn) return true;
  // What an operator that keeps no such note has done is not known.
  return deployed ?? (before || update.type !== "preview" ? undefined : false);
}

/** Of an Update that another operator made, its Stack's status tells. */
function triggerOf(view: StackView, update: UpdateView): Trigger {
  if (update.trigger) return update.trigger;
  const { currentUpdate, observedReconcileRequest } = statusOfStack(view);
  const known = currentUpdate?.name === update.name ? currentUpdate : undefined;
  return {
    type: "up",
    generation: known?.generation ?? 0,
    revision: known?.commit ?? "",
    reconcileRequest: known?.reconcileRequest ?? observedReconcileRequest ?? "",
    inputs: "",
  };
}

/** Strictly later than the last, to the second: the next Update is named after it. */
function endOf(view: StackView, update: UpdateView): number {
  const before = timeOf(lastUpdateOf(view)?.lastResyncTime);
  const end = update.endedAt ?? view.now;
  return before === undefined ? end : Math.max(end, before + 1000);
}

/** A new commit or spec starts afresh. */
function failuresOf(before: LastUpdate | undefined, trigger: Trigger): number {
  if (!before || before.state === "succeeded" || typeOf(before) !== trigger.type) return 0;
  return isSameTrigger(before, trigger) ? (before.failures ?? 0) : 0;
}

const maskedValue = "[secret]";
const longestOutput = 16_384;
const longestOutputs = 131_072;

/** Status must stay small: what does not fit is in the Secret of the outputs alone. */
function masked(values: Extract<OutputsView, { kind: "read" }>["values"]): Record<string, JsonValue> {
  let room = longestOutputs;
  const shown = values.map(({ name, secret, value }): [string, JsonValue] => {
    const length = secret ? 0 : JSON.stringify(value).length;
    if (length > longestOutput || length > room) return [name, "[too long]"];
    room -= length;
    return [name, secret ? maskedValue : value];
  });
  return Object.fromEntries(shown);
}
