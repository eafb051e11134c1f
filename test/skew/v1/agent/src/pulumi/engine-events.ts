/** The CLI's event log, one JSON object a line, into the few small events that travel, with their secrets masked. */
import type { RunEvent, Severity, StepCounts } from "../../../rpc/src/index.ts";
import { bounded, cut, cutName, linesOf, told, type Clean } from "../system/clean-text.ts";
import { classify, type Known } from "./explain.ts";
import { entry } from "./project.ts";

/** Masks secrets. */
export type Cleaner = (text: string) => Clean;

export interface EngineEvent {
  /** The CLI's own number of the event. */
  readonly sequence: number;
  readonly event?: RunEvent;
  /** What the program printed as an error, or the engine found wrong. */
  readonly errorLines: readonly Clean[];
  /** What that is known to mean. */
  readonly known?: Known | undefined;
  /** The stack's outputs as the engine has them: secrets masked, in the form of the state file. */
  readonly stackOutputs?: Readonly<Record<string, unknown>>;
  readonly isMandatoryPolicy: boolean;
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
  const none = { sequence, errorLines: [], isMandatoryPolicy: false };
  for (const [name, convert] of converters) {
    const payload = entry(raw, name);
    if (payload !== undefined) return { ...none, ...convert(payload, clean) };
  }
  return none;
}

type Converted = Partial<Omit<EngineEvent, "sequence">>;

const converters: readonly (readonly [string, (payload: unknown, clean: Cleaner) => Converted])[] = [
  ["resourcePreEvent", (payload, clean) => resource(payload, "started", clean)],
  ["resOutputsEvent", (payload, clean) => resource(payload, "finished", clean)],
  ["resOpFailedEvent", (payload, clean) => resource(payload, "failed", clean)],
  ["diagnosticEvent", diagnostic],
  ["policyEvent", policy],
  ["summaryEvent", summary],
  ["errorEvent", (payload, clean) => wrong(text(payload, "error"), clean)],
];

function resource(payload: unknown, phase: "started" | "finished" | "failed", clean: Cleaner): Converted {
  const metadata = entry(payload, "metadata");
  const resourceType = text(metadata, "type");
  const outputs = entry(entry(metadata, "new"), "outputs");
  const isStack = resourceType === "pulumi:pulumi:Stack" && phase === "finished";
  return {
    event: {
      kind: "resource",
      phase,
      op: cutName(text(metadata, "op"), 64),
      urn: cut(clean(text(metadata, "urn")), 4096),
      resourceType: cutName(resourceType, 1024),
    },
    ...(isStack && isRecord(outputs) && { stackOutputs: outputs }),
  };
}

function diagnostic(payload: unknown, clean: Cleaner): Converted {
  const spelled = text(payload, "severity");
  // Of interest to who debugs the engine, and by far the most of them.
  if (spelled === "debug") return {};
  const message = text(payload, "message").trimEnd();
  if (message === "" || entry(payload, "ephemeral") === true) return {};
  const urn = text(payload, "urn");
  return {
    event: {
      kind: "diagnostic",
      severity: severityOf(spelled),
      message: bounded(clean(message)),
      ...(urn !== "" && { urn: cut(clean(urn), 4096) }),
    },
    // `info#err` is what the program wrote to its standard error: where languages say what is wrong.
    ...((spelled === "error" || spelled === "info#err") && wrong(message, clean)),
  };
}

/** Judged as it is, shown with its secrets masked: a secret may look like a word that matters. */
function wrong(message: string, clean: Cleaner): Pick<EngineEvent, "errorLines" | "known"> {
  return { errorLines: errorLinesOf(clean(message)), known: classify(message) };
}

function errorLinesOf(message: Clean): Clean[] {
  return linesOf(message).map((line) => cut(line, 2_000));
}

function severityOf(spelled: string): Severity {
  return spelled === "error" || spelled === "warning" ? spelled : "info";
}

function policy(payload: unknown, clean: Cleaner): Converted {
  const urn = text(payload, "resourceUrn");
  const level = cutName(text(payload, "enforcementLevel"), 64);
  const name = cut(clean(`${text(payload, "policyPackName")}/${text(payload, "policyName")}`), 512);
  const message = bounded(clean(text(payload, "message").trim()));
  const isMandatoryPolicy = level === "mandatory";
  return {
    event: { kind: "policy", level, policy: name, message, ...(urn !== "" && { urn: cut(clean(urn), 4096) }) },
    isMandatoryPolicy,
    errorLines: isMandatoryPolicy ? errorLinesOf(told`${name}: ${message}`) : [],
  };
}

function summary(payload: unknown): Converted {
  const duration = entry(payload, "durationSeconds");
  const result = cutName(text(payload, "result"), 64);
  return {
    event: {
      kind: "summary",
      changes: countsOf(entry(payload, "resourceChanges")),
      durationSeconds: typeof duration === "number" ? duration : 0,
      ...(result !== "" && { result }),
    },
  };
}

function countsOf(value: unknown): StepCounts {
  if (!isRecord(value)) return {};
  const counts = Object.entries(value).flatMap(([op, count]) =>
    typeof count === "number" && Number.isInteger(count) && count >= 0 ? [[cutName(op, 64), count] as const] : [],
  );
  return Object.fromEntries(counts.slice(0, 64));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown, key: string): string {
  const found = entry(value, key);
  return typeof found === "string" ? found : "";
}
