/** What the benchmark of the console measures. */
import type { FrameFigures } from "./frames.ts";

/** Times are in milliseconds, from the start of the navigation. */
export interface Visit {
  /** The page's own files are loaded. */
  readonly loadMs: number;
  /** The first Stacks are in the page. */
  readonly firstMs: number;
  /** All Stacks are in the page's memory, sorted. */
  readonly allMs: number;
  /** CPU time of the page's main thread until then, which other work on the machine hardly changes. */
  readonly cpuMs: number;
  /** The longest that the main thread was busy without a pause until then, if that was more than 50 ms; otherwise 0. */
  readonly longestTaskMs: number;
  readonly scroll: FrameFigures & {
    readonly cpuMsPerFrame: number;
    /** How often the main thread was busy for more than 50 ms: keys and clicks wait that long. */
    readonly longTasks: number;
  };
}

export interface ConsoleFigures {
  /** Compressed. */
  readonly scriptBytes: number;
  readonly styleBytes: number;
  readonly visits: readonly Visit[];
  /** The load average of the machine at the end. */
  readonly load: number;
}
