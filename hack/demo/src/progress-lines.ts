/** Turns the state of a Stack and its update into progress lines. */
import type { Stack, Update, Workspace } from "@pko/api";

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

export function isReady({ metadata, status }: Stack): boolean {
  const ready = condition({ status }, "Ready");
  return ready?.status === "True" && ready.observedGeneration === metadata.generation && !status?.currentUpdate;
}

export function isStalled(stack: Stack): boolean {
  return condition(stack, "Stalled")?.status === "True";
}

/** Whether a line of the workspace pod's log was written at or after `since`. */
export function isSince(line: string, since: Date): boolean {
  const time = parse(line)?.["time"];
  return typeof time === "string" && time >= since.toISOString();
}

/** The text for a line of the workspace pod's log that is about a resource, an error of the program, or the update's URL. */
export function resourceLine(line: string): string | undefined {
  const entry = parse(line);
  if (entry?.["message"] === "resource finished") {
    const mark = marks[String(entry["op"])] ?? "~";
    return `${mark} ${String(entry["name"])}  ${String(entry["type"])}`;
  }
  if (entry?.["message"] === "resource failed") return `✗ ${String(entry["name"])}  ${String(entry["type"])}`;
  if (entry?.["message"] === "program output" && entry["level"] === "error") return String(entry["text"]);
  if (entry?.["message"] === "Pulumi Cloud link") return `details: ${String(entry["url"])}`;
  return undefined;
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

function parse(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
