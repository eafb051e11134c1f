/** Converts the CLI's event log, one JSON object per line, to the protocol's events, with secrets masked. */
import { isRecord } from "@pko/rpc";
import {
  maxIdChars,
  maxUrnChars,
  providerUrn,
  type ResourceEvent,
  type RunEvent,
  type Severity,
  type StepCounts,
} from "@pko/records";
import { bounded, truncate, nonEmptyLines, cleanText, type Clean } from "../system/clean-text.ts";
import { refusedAt } from "../plans/refusal.ts";
import { classify, type KnownError } from "./explain.ts";
import { entry } from "./project/project.ts";
import { warnsOfPendingOperations } from "./stack-state.ts";
import { reportedChanges } from "./property-changes.ts";
import { unknownValue } from "./signatures.ts";

/** Masks secrets. */
export type Cleaner = (text: string) => Clean;

export interface EngineEvent {
  /** The CLI's sequence number. */
  readonly sequence: number;
  /** When it happened, in whole seconds since 1970. */
  readonly seconds: number;
  readonly event?: RunEvent;
  /** Errors of the program or of the engine. */
  readonly errorLines: readonly Clean[];
  /** The meaning of these errors, if known. */
  readonly known?: KnownError | undefined;
  /** The stack's outputs in the format of the state file. The engine masks secrets. */
  readonly stackOutputs?: Readonly<Record<string, unknown>>;
  readonly isMandatoryPolicy: boolean;
  /** The state has operations that were interrupted. */
  readonly warnsOfPending: boolean;
  /** What the engine reports about a resource whose step has finished. */
  readonly finished?: unknown;
  /** Whether the event belongs to a preview; absent if it does not show that. */
  readonly isPreview?: boolean;
  /** The resource at which the engine refused a plan; "" if it is unknown. */
  readonly refusedUrn?: string | undefined;
}

export function parseEngineEvent(line: string, clean: Cleaner): EngineEvent | undefined {
  let raw: unknown;
  try {
    raw = JSON.parse(line);
  } catch {
    return undefined;
  }
  const sequence = entry(raw, "sequence");
  if (typeof sequence !== "number") return undefined;
  const timestamp = entry(raw, "timestamp");
  const seconds = typeof timestamp === "number" ? timestamp : 0;
  const none = { sequence, seconds, errorLines: [], isMandatoryPolicy: false, warnsOfPending: false };
  for (const [name, convert] of converters) {
    const payload = entry(raw, name);
    if (payload !== undefined) return { ...none, ...convert(payload, clean) };
  }
  return none;
}

type Converted = Partial<Omit<EngineEvent, "sequence" | "seconds">>;

const converters: readonly (readonly [string, (payload: unknown, clean: Cleaner) => Converted])[] = [
  ["resourcePreEvent", (payload, clean) => resource(payload, "started", clean)],
  ["resOutputsEvent", (payload, clean) => resource(payload, "finished", clean)],
  ["resOpFailedEvent", (payload, clean) => resource(payload, "failed", clean)],
  ["diagnosticEvent", diagnostic],
  ["policyEvent", policy],
  ["summaryEvent", summary],
  ["errorEvent", (payload, clean) => errorFields(text(payload, "error"), clean)],
];

function resource(payload: unknown, phase: ResourceEvent["phase"], clean: Cleaner): Converted {
  const metadata = entry(payload, "metadata");
  const outputs = entry(entry(metadata, "new"), "outputs");
  const isStack = text(metadata, "type") === "pulumi:pulumi:Stack" && phase === "finished";
  // Nothing happens between the start and the end of such a step, and most resources do not change.
  const isQuiet = phase === "started" && text(metadata, "op") === "same";
  return {
    ...(!isQuiet && { event: resourceEvent(metadata, phase, clean) }),
    isPreview: entry(payload, "planning") === true,
    ...(isStack && isRecord(outputs) && { stackOutputs: outputs }),
    ...(phase === "finished" && { finished: metadata }),
  };
}

function resourceEvent(metadata: unknown, phase: ResourceEvent["phase"], clean: Cleaner): ResourceEvent {
  const optional = (field: string, value: string, max: number) =>
    value === "" || value === unknownValue ? {} : { [field]: truncate(clean(value), max) };
  const [before, after] = [entry(metadata, "old"), entry(metadata, "new")];
  const base = {
    kind: "resource",
    phase,
    op: truncate(clean(text(metadata, "op")), 64),
    urn: truncate(clean(text(metadata, "urn")), maxUrnChars),
    resourceType: truncate(clean(text(metadata, "type")), 1024),
    ...optional("parent", text(after ?? before, "parent"), maxUrnChars),
  } as const;
  if (phase === "started") return base;
  return {
    ...base,
    ...optional("provider", providerUrn(text(metadata, "provider")), maxUrnChars),
    ...optional("id", text(after, "id") || text(before, "id"), maxIdChars),
    ...reportedChanges(metadata, phase === "failed", clean),
  };
}

function diagnostic(payload: unknown, clean: Cleaner): Converted {
  const severity = text(payload, "severity");
  // Most events are debug events, which only help to debug the engine.
  if (severity === "debug") return {};
  const message = text(payload, "message").trimEnd();
  if (message === "" || entry(payload, "ephemeral") === true) return {};
  const urn = text(payload, "urn");
  return {
    event: {
      kind: "diagnostic",
      severity: toSeverity(severity),
      message: bounded(clean(message)),
      ...(urn !== "" && { urn: truncate(clean(urn), 4096) }),
    },
    warnsOfPending: warnsOfPendingOperations(message),
    // `info#err` is the program's standard error, where languages print errors.
    ...((severity === "error" || severity === "info#err") && errorFields(message, clean)),
    ...(severity === "error" && { refusedUrn: refusedUrn(message, urn, clean) }),
  };
}

/** Classifies the original text, because masking a secret could hide a part that matters. */
function errorFields(message: string, clean: Cleaner): Pick<EngineEvent, "errorLines" | "known"> {
  return { errorLines: errorLines(clean(message)), known: classify(message) };
}

function refusedUrn(message: string, urn: string, clean: Cleaner): string | undefined {
  const refused = refusedAt(message, urn);
  return refused === undefined ? undefined : truncate(clean(refused), 4096);
}

function errorLines(message: Clean): Clean[] {
  return nonEmptyLines(message).map((line) => truncate(line, 2_000));
}

function toSeverity(severity: string): Severity {
  return severity === "error" || severity === "warning" ? severity : "info";
}

function policy(payload: unknown, clean: Cleaner): Converted {
  const urn = text(payload, "resourceUrn");
  const level = truncate(clean(text(payload, "enforcementLevel")), 64);
  const name = truncate(clean(`${text(payload, "policyPackName")}/${text(payload, "policyName")}`), 512);
  const message = bounded(clean(text(payload, "message").trim()));
  const isMandatoryPolicy = level === "mandatory";
  return {
    event: { kind: "policy", level, policy: name, message, ...(urn !== "" && { urn: truncate(clean(urn), 4096) }) },
    isMandatoryPolicy,
    errorLines: isMandatoryPolicy ? errorLines(cleanText`${name}: ${message}`) : [],
  };
}

function summary(payload: unknown, clean: Cleaner): Converted {
  const duration = entry(payload, "durationSeconds");
  const result = truncate(clean(text(payload, "result")), 64);
  return {
    event: {
      kind: "summary",
      changes: toStepCounts(entry(payload, "resourceChanges"), clean),
      durationSeconds: typeof duration === "number" ? duration : 0,
      ...(result !== "" && { result }),
    },
    isPreview: entry(payload, "isPreview") === true,
  };
}

function toStepCounts(value: unknown, clean: Cleaner): StepCounts {
  if (!isRecord(value)) return {};
  const counts = Object.entries(value).flatMap(([op, count]) =>
    typeof count === "number" && Number.isInteger(count) && count >= 0
      ? [[truncate(clean(op), 64), count] as const]
      : [],
  );
  return Object.fromEntries(counts.slice(0, 64));
}

function text(value: unknown, key: string): string {
  const found = entry(value, key);
  return typeof found === "string" ? found : "";
}
