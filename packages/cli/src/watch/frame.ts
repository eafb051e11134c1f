/** The live view of a run: lines that fit the terminal. Pure. */
import { updateTones } from "../commands/history.ts";
import type { RunResource } from "../documents.ts";
import type { Text, Tone } from "../output/blocks.ts";
import { plainText } from "../output/blocks.ts";
import type { Paint } from "../output/style.ts";
import { duration } from "../output/time.ts";
import { printable, width, wrap } from "../output/wrap.ts";
import { diagnosticText, opText, took } from "../runs/resource-blocks.ts";
import { isChange } from "../runs/run-log.ts";
import { summarizeUpdate } from "../stacks/summary.ts";
import { hiddenText } from "../visibility.ts";
import { progressText } from "../runs/show-report.ts";
import type { Followed } from "./follow-run.ts";

export interface Canvas {
  readonly width: number;
  /** In lines. */
  readonly height: number;
  readonly now: number;
  readonly paint: Paint;
}

export interface Watched extends Followed {
  readonly stackName: string;
  /** How many resources the stack had after its last recorded run. */
  readonly expected?: number;
}

type Line = readonly Text[];

export function frame(watched: Watched, canvas: Canvas): string[] {
  const head: Line[] = [titleOf(watched, canvas.now), progressOf(watched, canvas.width)];
  const notes = notesOf(watched, canvas.width);
  const diagnostics = watched.log.diagnostics.filter(({ severity }) => severity !== "info").slice(-maxDiagnostics);
  const messages = diagnostics.map((each): Line => ["  ", diagnosticText(each)]);
  const room = Math.max(1, canvas.height - 1 - head.length - notes.length - messages.length);
  const lines = [...head, ...resourcesOf(watched, room, canvas.now), ...messages, ...notes];
  return lines.slice(0, Math.max(1, canvas.height - 1)).map((line) => drawn(line, canvas));
}

const maxDiagnostics = 4;

function titleOf({ update, stackName, log }: Watched, now: number): Line {
  const { type, state, startTime, name, endTime } = summarizeUpdate(update);
  const since = startTime === undefined ? "" : duration((endTime ? Date.parse(endTime) : now) - Date.parse(startTime));
  const step = log.step !== undefined && log.step !== type ? ` (${log.step})` : "";
  return [
    { text: `${type}${step} of Stack ${stackName}`, tone: "strong" },
    { text: `  ${name}  `, tone: "muted" },
    { text: state, tone: updateTones[state] },
    since === "" ? "" : `  ${since}`,
  ];
}

function progressOf(watched: Watched, columns: number): Line {
  const percent = percentOf(watched);
  const counts = countsText(watched);
  const size = Math.min(30, columns - width(counts) - 12);
  if (percent === undefined || size < 5) return [counts];
  const filled = Math.round((size * percent) / 100);
  const bar: Text = { text: "█".repeat(filled), tone: "good" };
  return [bar, { text: "░".repeat(size - filled), tone: "muted" }, ` ${String(percent).padStart(3)} %  `, counts];
}

/** Estimated from the resources of the last run, or else as the operator estimates it. */
export function percentOf({ update, log, expected }: Watched): number | undefined {
  const { state } = summarizeUpdate(update);
  if (state === "succeeded") return 100;
  const { resources } = log;
  if (expected === undefined || expected === 0 || resources.length === 0) return update.status?.progress?.percent;
  const done = resources.filter((each) => each.state !== "running").length;
  return Math.min(99, Math.floor((100 * done) / Math.max(expected, resources.length)));
}

function countsText({ log, update }: Watched): string {
  const { resources } = log;
  if (resources.length === 0) return reportedCounts(update) ?? "no resource yet";
  const count = (state: RunResource["state"]): number => resources.filter((each) => each.state === state).length;
  const parts = [`${count("done")} done`, `${count("running")} running`];
  return [...parts, ...(count("failed") > 0 ? [`${count("failed")} failed`] : [])].join(", ");
}

/** Without the percentage, which the bar shows. */
function reportedCounts({ status }: Watched["update"]): string | undefined {
  if (!status?.progress) return undefined;
  const { percent: _, ...rest } = status.progress;
  return progressText(rest);
}

const order: Readonly<Record<RunResource["state"], number>> = { failed: 0, running: 1, done: 2 };

/** Those that failed and those that run first; then the latest. */
function resourcesOf({ log }: Watched, room: number, now: number): Line[] {
  const shown = log.resources.filter((each) => isChange(each) || each.state === "running");
  const sorted = shown.toReversed().toSorted((a, b) => order[a.state] - order[b.state]);
  const isCut = sorted.length > room;
  const visible = sorted.slice(0, isCut ? room - 1 : room);
  const lines = visible.map((each) => resourceLine(each, now));
  const more: Line = [{ text: `  and ${sorted.length - visible.length} more`, tone: "muted" }];
  return isCut ? [...lines, more] : lines;
}

const marks: Readonly<Record<RunResource["state"], readonly [string, Tone]>> = {
  failed: ["✗", "bad"],
  running: ["●", "warning"],
  done: ["✓", "good"],
};

function resourceLine(resource: RunResource & { readonly startedAt?: string }, now: number): Line {
  const [mark, tone] = marks[resource.state];
  const { durationMs, startedAt, state, type, name } = resource;
  const spent = state === "running" && startedAt !== undefined ? Math.max(0, now - Date.parse(startedAt)) : durationMs;
  return ["  ", { text: mark, tone }, ` ${type} ${name}  `, opText(resource), `  ${took(spent)}`];
}

/** Wrapped, because a missing permission must be readable. */
function notesOf({ hidden, log }: Watched, columns: number): Line[] {
  const missing = missingEvents(log);
  const notes = hidden.map((each) => `${hiddenText(each)} This is the progress that the Update reports.`);
  const texts = missing > 0 ? [gapText(missing), ...notes] : notes;
  return texts.flatMap((text) => wrap(text, columns).map((line): Line => [{ text: line, tone: "warning" }]));
}

export const missingEvents = ({ gaps }: Pick<Watched["log"], "gaps">): number =>
  gaps.reduce((sum, { from, to }) => sum + to - from + 1, 0);

export const gapText = (missing: number): string =>
  `${missing === 1 ? "1 event is" : `${missing} events are`} missing: the log was rotated. The record fills the gap at the end.`;

/** Cut at the width, because a line that wraps could not be replaced. */
function drawn(line: Line, { width: columns, paint }: Canvas): string {
  let left = columns;
  return line
    .map((part) => {
      const text = cut(printable(plainText(part)).replaceAll(/\s*\n\s*/g, " "), left);
      left -= width(text);
      return paint(typeof part === "string" ? "plain" : part.tone, text);
    })
    .join("")
    .trimEnd();
}

function cut(text: string, limit: number): string {
  if (width(text) <= limit) return text;
  let result = "";
  for (const character of text) {
    if (width(result + character) > limit - 1) break;
    result += character;
  }
  return limit <= 0 ? "" : `${result}…`;
}
