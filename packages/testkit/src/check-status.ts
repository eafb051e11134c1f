/** The invariants of a status, which every test that reads one checks. */
import type { KubeObject } from "@pko/kube";

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message?: string;
  readonly lastTransitionTime: string;
  readonly observedGeneration?: number;
}

export interface StatusBearing extends KubeObject {
  readonly status?: {
    readonly observedGeneration?: number;
    readonly conditions?: readonly Condition[];
  };
}

/** Throws an error with all violations in the status, and in its change since `before` if that is given. */
export function checkStatus(object: StatusBearing, before?: StatusBearing): void {
  const faults = statusFaults(object, before);
  const name = `${object.kind} ${object.metadata.name ?? ""}`;
  if (faults.length > 0) throw new Error(`the status of ${name} is invalid:\n- ${faults.join("\n- ")}`);
}

/** All violations, as sentences. */
export function statusFaults(object: StatusBearing, before?: StatusBearing): string[] {
  return [
    ...conditionsOf(object).flatMap((condition) => conditionFaults(condition)),
    ...repeatedTypes(object),
    ...generationFaults(object),
    ...(kindRules[object.kind]?.(statusesOf(object)) ?? []),
    ...(before ? changeFaults(object, before) : []),
  ];
}

const reasonPattern = /^[A-Z][A-Za-z0-9]*$/;
const maxMessageLength = 32_768;

function conditionFaults({ type, status, reason, message, lastTransitionTime }: Condition): string[] {
  const faults: string[] = [];
  if (!["True", "False", "Unknown"].includes(status)) faults.push(`${type} has the status "${status}"`);
  if (!reasonPattern.test(reason)) faults.push(`${type} has the reason "${reason}", which is not CamelCase`);
  if (!message) faults.push(`${type} has no message`);
  if ((message ?? "").length > maxMessageLength) faults.push(`${type} has a message longer than ${maxMessageLength}`);
  if (Number.isNaN(Date.parse(lastTransitionTime))) faults.push(`${type} has no lastTransitionTime`);
  return faults;
}

function repeatedTypes(object: StatusBearing): string[] {
  const types = conditionsOf(object).map(({ type }) => type);
  return types.filter((type, index) => types.indexOf(type) !== index).map((type) => `${type} is set twice`);
}

function generationFaults(object: StatusBearing): string[] {
  const generation = object.metadata.generation ?? 0;
  const observed = [
    ["the status", object.status?.observedGeneration] as const,
    ...conditionsOf(object).map(({ type, observedGeneration }) => [type, observedGeneration] as const),
  ];
  return observed.flatMap(([who, seen]) =>
    seen !== undefined && seen > generation ? [`${who} observed generation ${seen} of ${generation}`] : [],
  );
}

type Statuses = ReadonlyMap<string, string>;

/** The rules for the combination of conditions of each kind. */
const kindRules: Readonly<Record<string, (statuses: Statuses) => string[]>> = {
  Stack(statuses) {
    const others = ["Reconciling", "Stalled"].filter((type) => statuses.has(type));
    const faults = others.filter((type) => statuses.get(type) !== "True").map((type) => `${type} is set and not True`);
    if (!statuses.has("Ready")) return statuses.size === 0 ? [] : [...faults, "Ready is missing"];
    if (statuses.get("Ready") === "True") {
      return [...faults, ...others.map((type) => `${type} is set while Ready is True`)];
    }
    if (others.length === 0) faults.push("neither Reconciling nor Stalled is set while Ready is not True");
    if (others.length === 2) faults.push("both Reconciling and Stalled are set");
    return faults;
  },
  Update(statuses) {
    const isTrue = (type: string): boolean => statuses.get(type) === "True";
    return isTrue("Progressing") && (isTrue("Complete") || isTrue("Failed")) ? ["it is Progressing and finished"] : [];
  },
};

function changeFaults(object: StatusBearing, before: StatusBearing): string[] {
  const faults: string[] = [];
  const [seen, hadSeen] = [object.status?.observedGeneration ?? 0, before.status?.observedGeneration ?? 0];
  if (seen < hadSeen) faults.push(`the observed generation went back from ${hadSeen} to ${seen}`);
  for (const old of conditionsOf(before)) {
    const now = conditionsOf(object).find(({ type }) => type === old.type);
    if (!now) continue;
    const moved = Date.parse(now.lastTransitionTime) - Date.parse(old.lastTransitionTime);
    if (now.status === old.status && moved !== 0)
      faults.push(`${now.type} changed its lastTransitionTime, but not its status`);
    if (now.status !== old.status && moved < 0) faults.push(`${now.type} changed its status in the past`);
  }
  return faults;
}

function conditionsOf(object: StatusBearing): readonly Condition[] {
  return object.status?.conditions ?? [];
}

function statusesOf(object: StatusBearing): Statuses {
  return new Map(conditionsOf(object).map(({ type, status }) => [type, status]));
}
