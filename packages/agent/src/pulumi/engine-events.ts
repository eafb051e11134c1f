/** The CLI's event log, one JSON object a line, into the few small events that travel. Secrets in it are masked. */
import { maxMessageChars, type RunEvent, type Severity, type StepCounts } from "@pko/rpc";
import { entry } from "./project.ts";

export interface EngineEvent {
  /** The CLI's own number of the event. */
  readonly sequence: number;
  readonly event?: RunEvent;
  /** What the program printed as an error, or the engine found wrong. */
  readonly errorLines: readonly string[];
  /** The stack's outputs as the engine has them: secrets masked, in the form of the state file. */
  readonly stackOutputs?: Readonly<Record<string, unknown>>;
  readonly isMandatoryPolicy: boolean;
}

export function parseEngineEvent(line: string): EngineEvent | undefined {
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
    if (payload !== undefined) return { ...none, ...convert(payload) };
  }
  return none;
}

type Converted = Partial<Omit<EngineEvent, "sequence">>;

const converters: readonly (readonly [string, (payload: unknown) => Converted])[] = [
  ["resourcePreEvent", (payload) => resource(payload, "started")],
  ["resOutputsEvent", (payload) => resource(payload, "finished")],
  ["resOpFailedEvent", (payload) => resource(payload, "failed")],
  ["diagnosticEvent", diagnostic],
  ["policyEvent", policy],
  ["summaryEvent", summary],
  ["errorEvent", (payload) => ({ errorLines: linesOf(text(payload, "error")) })],
];

function resource(payload: unknown, phase: "started" | "finished" | "failed"): Converted {
  const metadata = entry(payload, "metadata");
  const resourceType = text(metadata, "type");
  const outputs = entry(entry(metadata, "new"), "outputs");
  const isStack = resourceType === "pulumi:pulumi:Stack" && phase === "finished";
  return {
    event: {
      kind: "resource",
      phase,
      op: text(metadata, "op").slice(0, 64),
      urn: text(metadata, "urn").slice(0, 4096),
      resourceType: resourceType.slice(0, 1024),
    },
    ...(isStack && isRecord(outputs) && { stackOutputs: outputs }),
  };
}

function diagnostic(payload: unknown): Converted {
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
      message: bounded(message),
      ...(urn !== "" && { urn: urn.slice(0, 4096) }),
    },
    // `info#err` is what the program wrote to its standard error: where languages say what is wrong.
    errorLines: spelled === "error" || spelled === "info#err" ? linesOf(message) : [],
  };
}

function severityOf(spelled: string): Severity {
  return spelled === "error" || spelled === "warning" ? spelled : "info";
}

function policy(payload: unknown): Converted {
  const urn = text(payload, "resourceUrn");
  const level = text(payload, "enforcementLevel").slice(0, 64);
  const name = `${text(payload, "policyPackName")}/${text(payload, "policyName")}`.slice(0, 512);
  const message = bounded(text(payload, "message").trim());
  const isMandatoryPolicy = level === "mandatory";
  return {
    event: { kind: "policy", level, policy: name, message, ...(urn !== "" && { urn: urn.slice(0, 4096) }) },
    isMandatoryPolicy,
    errorLines: isMandatoryPolicy ? linesOf(`${name}: ${message}`) : [],
  };
}

function summary(payload: unknown): Converted {
  const duration = entry(payload, "durationSeconds");
  const result = text(payload, "result").slice(0, 64);
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
    typeof count === "number" && Number.isInteger(count) && count >= 0 ? [[op.slice(0, 64), count] as const] : [],
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

export function bounded(message: string): string {
  return message.length > maxMessageChars ? `${message.slice(0, maxMessageChars - 1)}…` : message;
}

function linesOf(message: string): string[] {
  return message
    .split("\n")
    .map((line) => line.trimEnd())
    .filter((line) => line !== "")
    .map((line) => line.slice(0, 2_000));
}
