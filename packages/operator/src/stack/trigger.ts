/** Why an update runs, how that is remembered on the Update itself, and how the Update is named after it. */
import {
  cancellationRequestAnnotation,
  reconcileRequestAnnotation,
  updateNameOf,
  type LastUpdate,
  type Stack,
  type UpdateType,
} from "@pko/api";

export interface Trigger {
  readonly type: UpdateType;
  readonly generation: number;
  readonly revision: string;
  /** Of the revision's content, where the source tells it. */
  readonly digest?: string;
  readonly reconcileRequest: string;
  /** Outputs of other Stacks, and values of Secrets and ConfigMaps, with their versions. */
  readonly inputs: string;
}

/** On an Update: the trigger as JSON. A crash between its creation and the Stack's status forgets nothing. */
export const triggerAnnotation = "pulumi.com/trigger";

export const requestOf = ({ metadata }: Stack): string => metadata.annotations?.[reconcileRequestAnnotation] ?? "";

/** Whether it is this Update that was asked to be cancelled: a later one has another name. */
export const isCancelled = ({ metadata }: Stack, updateName: string | undefined): boolean =>
  updateName !== undefined && metadata.annotations?.[cancellationRequestAnnotation] === updateName;

export const triggerText = (trigger: Trigger): string => JSON.stringify(trigger);

const types: Readonly<Record<string, UpdateType>> = {
  up: "up",
  preview: "preview",
  refresh: "refresh",
  destroy: "destroy",
};

/** Undefined for a text that is no trigger. */
export function parseTrigger(text: string | undefined): Trigger | undefined {
  if (text === undefined) return undefined;
  try {
    const given = JSON.parse(text) as Partial<Record<keyof Trigger, unknown>> | null;
    const type = types[String(given?.type)];
    if (!given || !type) return undefined;
    const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
    return {
      type,
      generation: typeof given.generation === "number" ? given.generation : 0,
      revision: textOf(given.revision),
      ...(textOf(given.digest) && { digest: textOf(given.digest) }),
      reconcileRequest: textOf(given.reconcileRequest),
      inputs: textOf(given.inputs),
    };
  } catch {
    return undefined;
  }
}

/** Whether the last update was for this. */
export function isSameTrigger(last: LastUpdate, trigger: Trigger): boolean {
  return (
    typeOf(last) === trigger.type &&
    last.generation === trigger.generation &&
    (last.lastAttemptedCommit ?? "") === trigger.revision &&
    (last.digest ?? "") === (trigger.digest ?? "") &&
    (last.reconcileRequest ?? "") === trigger.reconcileRequest &&
    (last.inputs ?? "") === trigger.inputs
  );
}

/** The reference told the type only of late. */
export const typeOf = (last: LastUpdate): string => last.type ?? "up";

/**
 * The name follows from the trigger and from the update before it, whose end is the slot. So the same question always
 * gets the same name, and the same revision after another one is another update.
 */
export function nameOfUpdate(stack: Stack, trigger: Trigger): string {
  const last = stack.status?.lastUpdate;
  const { revision, digest = "", inputs } = trigger;
  return updateNameOf({
    stackName: stack.metadata.name ?? "",
    stackUid: stack.metadata.uid ?? "",
    type: trigger.type,
    generation: trigger.generation,
    revision: [revision, digest, inputs].filter((part, index) => index === 0 || part !== "").join(" "),
    reconcileRequest: trigger.reconcileRequest,
    resyncSlot: Math.floor((timeOf(last?.lastResyncTime) ?? 0) / 1000),
    attempt: last?.failures ?? 0,
  });
}

/** Milliseconds since the epoch; undefined for no time. */
export function timeOf(text: string | undefined): number | undefined {
  const ms = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

/** As Kubernetes writes times: to the second. */
export const timeText = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;
