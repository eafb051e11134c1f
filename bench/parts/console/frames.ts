/** How smooth a page scrolls, from the times of its frames. Pure. */
import { quantile } from "../../report/statistics.ts";

export interface FrameFigures {
  readonly frames: number;
  readonly medianMs: number;
  readonly p95Ms: number;
  /** The share of frames that took longer than two at 60 per second: a person sees them as a jerk. */
  readonly slowShare: number;
}

const slowMs = 1000 / 30;

/** `times` are those of consecutive frames, in milliseconds. */
export function frameFigures(times: readonly number[]): FrameFigures {
  const spans = times.slice(1).map((time, at) => time - (times[at] ?? time));
  return {
    frames: spans.length,
    medianMs: quantile(spans, 0.5),
    p95Ms: quantile(spans, 0.95),
    slowShare: spans.filter((span) => span > slowMs).length / Math.max(1, spans.length),
  };
}
