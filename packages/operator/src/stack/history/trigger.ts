/** What an update runs for, how the Update itself records that, and how the Update is named after it. */
import {
  cancellationRequestAnnotation,
  reconcileRequestAnnotation,
  updateNameOf,
  type ApprovalRequest,
  type LastUpdate,
  type Stack,
  type UpdateType,
} from "@pko/api";

import { parseTimestamp } from "../../shared/parse-timestamp.ts";

export interface Trigger {
  readonly type: UpdateType;
  readonly generation: number;
  readonly revision: string;
  /** Of the revision's content, if the source reports it. */
  readonly digest?: string;
  readonly reconcileRequest: string;
  /** Outputs of other Stacks, and values of Secrets and ConfigMaps, with their versions. */
  readonly inputs: string;
  /** Of a drift check: the request at that time. */
  readonly driftRequest?: string;
  /** A digest of what the spec contributes to the run; only with approvals, where other changes of the spec do not matter. */
  readonly run?: string;
}

export type TriggerReason =
  | "first"
  | "generation"
  | "revision"
  | "request"
  | "inputs"
  | "retry"
  | "resync"
  /** A drift check, or its correction. */
  | "drift"
  | "destroy";

export { triggerAnnotation } from "@pko/api";

export const reconcileRequestOf = ({ metadata }: Stack): string =>
  metadata.annotations?.[reconcileRequestAnnotation] ?? "";

/** Whether the cancellation request names this Update: a later Update has another name. */
export const isCancelled = ({ metadata }: Stack, updateName: string | undefined): boolean =>
  updateName !== undefined && metadata.annotations?.[cancellationRequestAnnotation] === updateName;

export const serializeTrigger = (trigger: Trigger): string => JSON.stringify(trigger);

const types: Readonly<Record<string, UpdateType>> = {
  up: "up",
  preview: "preview",
  refresh: "refresh",
  destroy: "destroy",
};

/** Undefined for a text that is not a trigger. */
export function parseTrigger(text: string | undefined): Trigger | undefined {
  if (text === undefined) return undefined;
  try {
    const parsed = JSON.parse(text) as Partial<Record<keyof Trigger, unknown>> | null;
    const type = types[String(parsed?.type)];
    if (!parsed || !type) return undefined;
    const stringOrEmpty = (value: unknown): string => (typeof value === "string" ? value : "");
    const [digest, driftRequest, run] = [parsed.digest, parsed.driftRequest, parsed.run].map(stringOrEmpty);
    return {
      type,
      generation: typeof parsed.generation === "number" ? parsed.generation : 0,
      revision: stringOrEmpty(parsed.revision),
      ...(digest && { digest }),
      reconcileRequest: stringOrEmpty(parsed.reconcileRequest),
      inputs: stringOrEmpty(parsed.inputs),
      ...(driftRequest && { driftRequest }),
      ...(run && { run }),
    };
  } catch {
    return undefined;
  }
}

/** Whether the last update ran for this trigger. */
export function isSameTrigger(last: LastUpdate, trigger: Trigger): boolean {
  return (
    lastTypeOf(last) === trigger.type &&
    last.generation === trigger.generation &&
    (last.lastAttemptedCommit ?? "") === trigger.revision &&
    (last.digest ?? "") === (trigger.digest ?? "") &&
    (last.reconcileRequest ?? "") === trigger.reconcileRequest &&
    (last.inputs ?? "") === trigger.inputs
  );
}

/** Whether a plan for one trigger is a plan for the other, if the source has the same content: the spec contributes the same. */
export function isSameRun(planned: Trigger, current: Trigger): boolean {
  const isSameSpec =
    planned.generation === current.generation || (planned.run !== undefined && planned.run === current.run);
  return (
    planned.type === current.type &&
    planned.reconcileRequest === current.reconcileRequest &&
    planned.inputs === current.inputs &&
    isSameSpec
  );
}

/** As far as the names of the revisions and their digests show it. */
export const isSameRevision = (planned: Trigger, current: Trigger): boolean =>
  planned.digest && current.digest ? planned.digest === current.digest : planned.revision === current.revision;

/** Earlier versions of the Go operator did not record the type. */
export const lastTypeOf = (last: LastUpdate): string => last.type ?? "up";

/** What an Update does for its trigger: everything at once, or make a plan for an approval, or apply that plan. */
export type Stage =
  | { readonly kind: "direct" }
  | { readonly kind: "plan" }
  | { readonly kind: "apply"; readonly request: ApprovalRequest };

const direct: Stage = { kind: "direct" };

/**
 * The name depends on the trigger and on when the previous update, or the previous drift check, ended. So a repeated attempt
 * to create an Update uses the same name, and returning to an earlier revision uses another. A plan is also named after the
 * previous one, which may have expired, and the Update that applies a plan after that plan.
 */
export function updateNameFor(stack: Stack, trigger: Trigger, stage: Stage = direct): string {
  return nameAfter(stack, trigger, stageName(stack, stage));
}

/**
 * As `updateNameFor`, unless an Update whose result is recorded has that name, because a time has recurred after a clock was wrong: then the
 * first name of a series that none has. The name is not simply made of more parts: an operator of another version, from which this one takes
 * over, may have created an Update that the cache does not show yet, and only the same name prevents a second one.
 */
export function unusedNameFor(
  stack: Stack,
  trigger: Trigger,
  { stage = direct, recorded = [] }: { readonly stage?: Stage; readonly recorded?: readonly string[] },
): string {
  let name = updateNameFor(stack, trigger, stage);
  for (let repetition = 1; recorded.includes(name); repetition++) {
    name = nameAfter(stack, trigger, `${stageName(stack, stage)} repetition ${repetition}`);
  }
  return name;
}

function nameAfter(stack: Stack, trigger: Trigger, what: string): string {
  const { lastUpdate: last, drift } = stack.status ?? {};
  const { revision, digest = "", inputs, driftRequest = "" } = trigger;
  const check = trigger.type === "refresh" ? [drift?.checkedAt ?? "", driftRequest] : [];
  return updateNameOf({
    stackName: stack.metadata.name ?? "",
    stackUid: stack.metadata.uid ?? "",
    type: trigger.type,
    generation: trigger.generation,
    revision: [revision, digest, inputs, ...check, what].filter((part, index) => index === 0 || part !== "").join(" "),
    reconcileRequest: trigger.reconcileRequest,
    resyncSlot: Math.floor((parseTimestamp(last?.lastResyncTime) ?? 0) / 1000),
    attempt: last?.failures ?? 0,
  });
}

function stageName({ status }: Stack, stage: Stage): string {
  switch (stage.kind) {
    case "direct":
      return "";
    case "plan":
      return `plan after ${status?.approval?.updateName ?? ""}`;
    case "apply":
      return `apply ${stage.request.updateName}`;
  }
}
