/** Turns the state of a Stack and its update into progress lines. */
import { reconcileRequestAnnotation, type Stack, type Update, type Workspace } from "@pko/api";
import {
  parseLogLine,
  runFinished,
  urnName,
  type AgentMessage,
  type NumberedEvent,
  type ResourceEvent,
} from "@pko/records";

export interface StackProgress {
  readonly stack: Stack;
  readonly workspace?: Workspace;
  /** The last update that the Stack created. */
  readonly update?: Update;
}

/** The current state in one line, which is printed when it changes. */
export function progressLine({ stack, workspace, update }: StackProgress): string {
  const { status } = stack;
  if (isReady(stack)) return readyLine(update);
  const stalled = condition(stack, "Stalled");
  if (stalled?.status === "True") return `stalled: ${stalled.message ?? stalled.reason ?? "no reason given"}`;
  if (update !== undefined && status?.currentUpdate?.name === update.metadata.name) {
    return `${updateType(update)} is running`;
  }
  const preparing = workspace && condition(workspace, "Ready");
  if (preparing?.status === "False" && preparing.message) return `workspace: ${preparing.message}`;
  return status?.waiting ? `waiting for ${status.waiting.for}` : "waiting for the operator";
}

/** Whether it is ready, including its last change and the last requested update. */
export function isReady({ metadata, status }: Stack): boolean {
  const ready = condition({ status }, "Ready");
  if (ready?.status !== "True" || ready.observedGeneration !== metadata.generation) return false;
  const request = metadata.annotations?.[reconcileRequestAnnotation];
  return status?.observedReconcileRequest === request && !status?.currentUpdate;
}

export function isStalled(stack: Stack): boolean {
  return condition(stack, "Stalled")?.status === "True";
}

/** Whether a line of the workspace pod's log is an event, or a message of the agent, at or after `since`. */
export function isSince(line: string, since: Date): boolean {
  const time = runEvent(line)?.time ?? messageOf(line)?.ts;
  return time !== undefined && time >= since.toISOString();
}

export const isEndOfRun = (line: string): boolean => messageOf(line)?.msg === runFinished;

/** The text for a line of the workspace pod's log that is about a resource, an error of the program, or the update's URL. */
export function resourceLine(line: string): string | undefined {
  const event = runEvent(line)?.event;
  if (event?.kind === "resource") return stepLine(event);
  if (event?.kind === "diagnostic" && event.severity === "error") return event.message;
  return event?.kind === "permalink" ? `details: ${event.url}` : undefined;
}

/** Unchanged resources would hide the changes. */
function stepLine({ phase, op, urn, resourceType }: ResourceEvent): string | undefined {
  if (op === "same" || phase === "started") return undefined;
  return `${phase === "failed" ? "✗" : (marks[op] ?? "~")} ${urnName(urn)}  ${resourceType}`;
}

const marks: Readonly<Record<string, string>> = { create: "+", update: "~", delete: "-", replace: "±", read: ">" };

export function outputLines(outputs: Readonly<Record<string, unknown>>): string[] {
  const width = Math.max(0, ...Object.keys(outputs).map((name) => name.length));
  return Object.entries(outputs)
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([name, value]) => `${name.padEnd(width)}  ${typeof value === "string" ? value : JSON.stringify(value)}`);
}

function readyLine(update: Update | undefined): string {
  if (update === undefined) return "ready";
  // No duration: the times are in whole seconds, and most of these updates take less than one.
  const { summary } = update.status ?? {};
  return `ready: ${updateType(update)} succeeded${summary ? ` (${summary})` : ""}`;
}

function updateType({ spec }: Update): string {
  return spec?.type ?? "up";
}

export function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}

interface Conditioned {
  readonly status?: { readonly conditions?: readonly Condition[] | undefined } | undefined;
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly observedGeneration?: number;
}

function condition({ status }: Conditioned, type: string): Condition | undefined {
  return status?.conditions?.find((one) => one.type === type);
}

function runEvent(line: string): NumberedEvent | undefined {
  const parsed = parseLogLine(line);
  return parsed.kind === "event" ? parsed.event : undefined;
}

function messageOf(line: string): AgentMessage | undefined {
  const parsed = parseLogLine(line);
  return parsed.kind === "message" ? parsed.message : undefined;
}

export const heading = (text: string): string => `\n── ${text}\n`;
