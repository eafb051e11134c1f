/** What is seen of a Stack and its update, as sentences for who watches. */
import type { Stack, Update, Workspace } from "@pko/api";

export interface Scene {
  readonly stack: Stack;
  readonly workspace?: Workspace;
  /** The last one that the Stack made. */
  readonly update?: Update;
}

/** What there is to say now. It is said when it differs from what was said before. */
export function sentenceOf({ stack, workspace, update }: Scene): string {
  const { status } = stack;
  if (isReady(stack)) return endOf(update);
  const stalled = condition(stack, "Stalled");
  if (stalled?.status === "True") return `stalled: ${stalled.message ?? stalled.reason ?? "no reason given"}`;
  if (update !== undefined && status?.currentUpdate?.name === update.metadata.name) {
    return `${typeOf(update)} is running`;
  }
  const preparing = workspace && condition(workspace, "Ready");
  if (preparing?.status === "False" && preparing.message) return `workspace: ${preparing.message}`;
  return status?.waiting ? `waiting for ${status.waiting.for}` : "seen by nobody yet";
}

export function isReady({ metadata, status }: Stack): boolean {
  const ready = condition({ status }, "Ready");
  return ready?.status === "True" && ready.observedGeneration === metadata.generation && !status?.currentUpdate;
}

export function isStalled(stack: Stack): boolean {
  return condition(stack, "Stalled")?.status === "True";
}

/** Whether a line of the workspace pod's log was written then or later. */
export function isSince(line: string, since: Date): boolean {
  const time = parse(line)?.["time"];
  return typeof time === "string" && time >= since.toISOString();
}

/** A line of the workspace pod's log, where it tells of a resource or of the program's own words. */
export function resourceLine(line: string): string | undefined {
  const entry = parse(line);
  if (entry?.["message"] === "resource finished") {
    const mark = marks[String(entry["op"])] ?? "~";
    return `${mark} ${String(entry["name"])}  ${String(entry["type"])}`;
  }
  if (entry?.["message"] === "resource failed") return `✗ ${String(entry["name"])}  ${String(entry["type"])}`;
  if (entry?.["message"] === "program said" && entry["level"] === "error") return String(entry["text"]);
  if (entry?.["message"] === "page opened") return `follow it at ${String(entry["url"])}`;
  return undefined;
}

const marks: Readonly<Record<string, string>> = { create: "+", update: "~", delete: "-", replace: "±", read: ">" };

export function outputLines(outputs: Readonly<Record<string, unknown>>): string[] {
  const width = Math.max(0, ...Object.keys(outputs).map((name) => name.length));
  return Object.entries(outputs)
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([name, value]) => `${name.padEnd(width)}  ${typeof value === "string" ? value : JSON.stringify(value)}`);
}

function endOf(update: Update | undefined): string {
  if (update === undefined) return "ready";
  // No duration: its times are whole seconds, and most of these updates take less than one.
  const { summary } = update.status ?? {};
  return `ready: ${typeOf(update)} succeeded${summary ? ` (${summary})` : ""}`;
}

function typeOf({ spec }: Update): string {
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
