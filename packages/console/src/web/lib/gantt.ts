/** The bars of a run's chart. Pure. */
import type { RunResource } from "./run.ts";

export interface Bar {
  readonly resource: RunResource;
  /** In percent of the width. */
  readonly left: number;
  readonly width: number;
  readonly durationMs: number;
}

export interface Chart {
  readonly bars: readonly Bar[];
  readonly ticks: readonly { readonly left: number; readonly ms: number }[];
  readonly spanMs: number;
}

/** Shorter bars could not be seen. */
const minWidth = 0.5;

/** `now` is the end of what still runs. Unchanged resources take no time, so they are left out unless `all`. */
export function chartOf(
  resources: readonly RunResource[],
  { now, all = false }: { now: number; all?: boolean },
): Chart {
  const shown = resources
    .filter(({ op, state }) => all || op !== "same" || state === "failed")
    .toSorted((a, b) => a.start - b.start || a.urn.localeCompare(b.urn));
  if (shown.length === 0) return { bars: [], ticks: [], spanMs: 0 };
  const start = Math.min(...shown.map((each) => each.start));
  const end = Math.max(...shown.map((each) => each.end ?? now));
  const spanMs = Math.max(1, end - start);
  const percent = (ms: number): number => (ms / spanMs) * 100;
  const bars = shown.map((resource): Bar => {
    const durationMs = Math.max(0, (resource.end ?? Math.max(now, resource.start)) - resource.start);
    const left = Math.min(percent(resource.start - start), 100 - minWidth);
    return { resource, left, width: Math.min(100 - left, Math.max(minWidth, percent(durationMs))), durationMs };
  });
  return { bars, ticks: ticksOf(spanMs), spanMs };
}

const steps = [100, 250, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000];
const maxTicks = 6;

function ticksOf(spanMs: number): Chart["ticks"] {
  const step = steps.find((each) => spanMs / each <= maxTicks) ?? Math.ceil(spanMs / maxTicks / 3_600_000) * 3_600_000;
  const count = Math.floor(spanMs / step);
  return Array.from({ length: count + 1 }, (_, at) => ({ left: ((at * step) / spanMs) * 100, ms: at * step }));
}

/** Empty until both times are known. */
export const durationBetween = (start?: string, end?: string): string =>
  start === undefined || end === undefined ? "" : shortDuration(Date.parse(end) - Date.parse(start));

/** `340 ms`, `2.1 s`, `1 min 5 s`. */
export function shortDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0).replace(/\.0$/, "")} s`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = Math.round((ms - minutes * 60_000) / 1000);
  return seconds === 0 ? `${minutes} min` : `${minutes} min ${seconds} s`;
}
