/** The timeouts of a run: how long it may take, and how long its command may be silent. */
import { stat } from "node:fs/promises";
import { pause, type StartRequest } from "@pko/rpc";

export type ExceededTimeout = "total" | "silence";

interface WatchedCommand {
  /** By the wall clock: perhaps an earlier agent process started it. */
  readonly startedAt: number;
  /** Everything that the command writes. */
  readonly files: readonly string[];
  /** Aborted when the command has ended. */
  readonly over: AbortSignal;
  /** The longest interval of checks. */
  readonly pollMs: number;
}

export class RunTimeouts {
  readonly #totalMs: number;
  readonly #silenceMs: number;
  readonly #age: Stopwatch;

  /** `startedAt`: of the run, by the wall clock. */
  constructor({ totalSeconds, silenceSeconds }: NonNullable<StartRequest["timeouts"]>, startedAt: number) {
    this.#totalMs = (totalSeconds ?? Infinity) * 1000;
    this.#silenceMs = (silenceSeconds ?? Infinity) * 1000;
    this.#age = new Stopwatch(startedAt);
  }

  get isTotalExceeded(): boolean {
    return this.#age.elapsedMs >= this.#totalMs;
  }

  /** The first timeout that the command exceeds; undefined if it ends before. */
  async exceededBy({ startedAt, files, over, pollMs }: WatchedCommand): Promise<ExceededTimeout | undefined> {
    if (this.#totalMs === Infinity && this.#silenceMs === Infinity) return undefined;
    let written = await lastWrite(files);
    const silence = new Stopwatch(Math.max(startedAt, written.time));
    while (!over.aborted) {
      if (this.isTotalExceeded) return "total";
      if (silence.elapsedMs >= this.#silenceMs) return "silence";
      const nextMs = Math.min(this.#totalMs - this.#age.elapsedMs, this.#silenceMs - silence.elapsedMs, pollMs);
      await pause(Math.max(1, nextMs), over);
      const latest = await lastWrite(files);
      if (latest.sizes !== written.sizes) silence.restart();
      written = latest;
    }
    return undefined;
  }
}

/** Uses the monotonic clock, except for the time before this agent process. */
class Stopwatch {
  #from: number;

  constructor(since: number) {
    const beforeMs = Date.now() - since;
    this.#from = performance.now() - (beforeMs > 0 ? beforeMs : 0);
  }

  get elapsedMs(): number {
    return performance.now() - this.#from;
  }

  restart(): void {
    this.#from = performance.now();
  }
}

/** The sizes change with every write. The time is that of the last one. */
async function lastWrite(files: readonly string[]): Promise<{ readonly sizes: string; readonly time: number }> {
  const found = await Promise.all(files.map((file) => stat(file).catch(() => undefined)));
  const sizes = found.map((file) => file?.size ?? 0).join(" ");
  return { sizes, time: Math.max(0, ...found.map((file) => file?.mtimeMs ?? 0)) };
}
