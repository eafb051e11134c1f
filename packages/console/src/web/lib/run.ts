/** A run from its events: resources with their times, diagnostics, counts and gaps. Pure. */
import { findGaps, urnName, urnType, type Gap, type NumberedEvent, type ResourceEvent } from "@pko/records/browser";

export type ResourceState = "running" | "done" | "failed";

/** One step on one resource. */
export interface RunResource {
  readonly urn: string;
  readonly name: string;
  readonly type: string;
  readonly op: string;
  readonly state: ResourceState;
  /** In milliseconds since 1970. */
  readonly start: number;
  /** Undefined while it runs. */
  readonly end?: number;
  readonly changes: NonNullable<ResourceEvent["changes"]>;
  readonly omittedChanges: number;
  readonly replaceKeys: readonly string[];
}

export interface Diagnostic {
  readonly severity: "error" | "warning" | "info" | "debug" | "policy";
  readonly message: string;
  readonly urn?: string;
  readonly time: string;
}

export interface RunModel {
  readonly resources: readonly RunResource[];
  /** Errors first. */
  readonly diagnostics: readonly Diagnostic[];
  readonly notices: readonly Diagnostic[];
  readonly steps: readonly { readonly name: string; readonly time: string }[];
  /** Events that were lost. */
  readonly gaps: readonly Gap[];
  readonly permalink?: string;
  /** Milliseconds since 1970; undefined without events. */
  readonly start?: number;
  readonly end?: number;
}

/** `events` in order, without duplicates (mergeEvents). */
export function runModel(events: readonly NumberedEvent[]): RunModel {
  const resources = new Map<string, RunResource>();
  const diagnostics: Diagnostic[] = [];
  const notices: Diagnostic[] = [];
  const steps: { name: string; time: string }[] = [];
  let permalink: string | undefined;
  for (const { time, event } of events) {
    if (event.kind === "resource") addResource(resources, event, Date.parse(time));
    else if (event.kind === "step") steps.push({ name: event.name, time });
    else if (event.kind === "permalink") permalink = event.url;
    else if (event.kind === "diagnostic") diagnostics.push({ ...event, time });
    else if (event.kind === "policy") diagnostics.push({ ...event, severity: "policy", time });
    else if (event.kind === "notice") notices.push({ severity: "info", message: event.message, time });
  }
  const times = events.map(({ time }) => Date.parse(time)).filter((time) => !Number.isNaN(time));
  return {
    resources: [...resources.values()],
    diagnostics: diagnostics.toSorted((a, b) => severities.indexOf(a.severity) - severities.indexOf(b.severity)),
    notices,
    steps,
    gaps: findGaps(events),
    ...(permalink !== undefined && { permalink }),
    ...(times.length > 0 && { start: Math.min(...times.slice(0, 1)), end: Math.max(...times.slice(-1)) }),
  };
}

const severities: readonly Diagnostic["severity"][] = ["error", "policy", "warning", "info", "debug"];

/** A replacement has several steps on one URN, so a row is a URN with an operation. */
function addResource(resources: Map<string, RunResource>, event: ResourceEvent, time: number): void {
  const { op, urn, phase, durationMs } = event;
  const key = `${op} ${urn}`;
  const known = resources.get(key);
  const start = known?.start ?? time - (durationMs ?? 0);
  const end = durationMs === undefined ? time : start + durationMs;
  resources.set(key, {
    urn,
    name: urnName(urn),
    type: event.resourceType || urnType(urn),
    op,
    state: states[phase],
    start,
    ...(phase !== "started" && { end }),
    ...detailsOf(event, known),
  });
}

const states: Readonly<Record<ResourceEvent["phase"], ResourceState>> = {
  started: "running",
  finished: "done",
  failed: "failed",
};

/** The event at the end of a step need not repeat what the first one reported. */
function detailsOf(event: ResourceEvent, known: RunResource | undefined) {
  return {
    changes: event.changes ?? known?.changes ?? [],
    omittedChanges: event.omittedChanges ?? known?.omittedChanges ?? 0,
    replaceKeys: event.replaceKeys ?? known?.replaceKeys ?? [],
  };
}

/** Pulumi's step names for people. */
const opTexts: Readonly<Record<string, string>> = {
  same: "unchanged",
  create: "create",
  update: "update",
  delete: "delete",
  replace: "replace",
  "create-replacement": "create replacement",
  "delete-replaced": "delete replaced",
  "discard-replaced": "discard replaced",
  read: "read",
  refresh: "refresh",
  import: "import",
};

export const opText = (op: string): string => opTexts[op] ?? op;

const symbols: Readonly<Record<string, string>> = {
  create: "+",
  update: "~",
  delete: "−",
  replace: "±",
  "create-replacement": "+",
  "delete-replaced": "−",
  same: "=",
};

export const opSymbol = (op: string): string => symbols[op] ?? "·";

export type OpClass = "danger" | "create" | "update" | "plain";

/** Replacements and deletions can lose data. */
export function opClass(op: string): OpClass {
  if (op.startsWith("delete") || op.startsWith("replace") || op === "discard-replaced") return "danger";
  if (op.startsWith("create") || op === "import") return "create";
  return op === "update" ? "update" : "plain";
}
