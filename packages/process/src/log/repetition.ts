/**
 * Limits repetition: of lines that say the same, the first ten of a minute are written. At the end of the minute, one more
 * line has the number of the others under the key `repeated`, also if the process ends before. Lines of the level debug are not
 * limited, because whoever enables them needs all of them.
 */
import { createHash } from "node:crypto";

import type { LogClock } from "./clock.ts";
import type { Plain } from "./plain.ts";
import type { Line } from "./render.ts";

type Entry = Omit<Line, "time">;

export interface RepetitionLimit {
  add(line: Entry): void;
}

interface LimitOptions {
  readonly clock: LogClock;
  readonly write: (line: Entry) => void;
}

const linesPerPeriod = 10;
const periodMs = 60_000;
/** More different lines in a minute than this are not counted: they are written. */
const maxTracked = 2000;

interface Tracked {
  readonly since: number;
  written: number;
  /** The last line that was not written, and how many there were. */
  last?: Entry;
  repeated: number;
}

/** Those with numbers that are not written yet. */
const unfinished = new Set<Limit>();

/** Writes all numbers now. For the end of a process. */
export function flushRepetitions(): void {
  for (const limit of unfinished) limit.flush();
}

// One listener for all: tests have many loggers.
process.on("exit", flushRepetitions);

export function repetitionLimit(options: LimitOptions): RepetitionLimit {
  return new Limit(options);
}

class Limit implements RepetitionLimit {
  readonly #clock: LogClock;
  readonly #write: (line: Entry) => void;
  /** In the order of their first lines. */
  readonly #tracked = new Map<string, Tracked>();
  #cancel: (() => void) | undefined;

  constructor({ clock, write }: LimitOptions) {
    this.#clock = clock;
    this.#write = write;
  }

  add(line: Entry): void {
    if (line.level === "debug") return this.#write(line);
    this.#endPeriods();
    const tracked = this.#track(sameness(line));
    if (!tracked || tracked.written < linesPerPeriod) {
      if (tracked) tracked.written++;
      return this.#write(line);
    }
    tracked.last = line;
    tracked.repeated++;
    this.#schedule();
  }

  flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#endPeriods(Infinity);
    unfinished.delete(this);
  }

  #track(key: string): Tracked | undefined {
    const known = this.#tracked.get(key);
    if (known || this.#tracked.size >= maxTracked) return known;
    const tracked = { since: this.#clock.monotonic(), written: 0, repeated: 0 };
    this.#tracked.set(key, tracked);
    return tracked;
  }

  #endPeriods(now = this.#clock.monotonic()): void {
    for (const [key, { since, last, repeated }] of this.#tracked) {
      if (now - since < periodMs) break;
      this.#tracked.delete(key);
      if (last) this.#write({ ...last, keys: { ...last.keys, repeated } });
    }
  }

  /** So that the number is written even if nothing else is logged. */
  #schedule(): void {
    if (this.#cancel) return;
    const pending = [...this.#tracked.values()].find(({ last }) => last);
    if (!pending) return void unfinished.delete(this);
    unfinished.add(this);
    const dueMs = pending.since + periodMs - this.#clock.monotonic();
    this.#cancel = this.#clock.after(dueMs, () => {
      this.#cancel = undefined;
      this.#endPeriods();
      this.#schedule();
    });
  }
}

/** They differ from pass to pass, and say nothing about what happened. */
const passKeys: ReadonlySet<string> = new Set(["reconcileID", "traceID", "spanID"]);

/** Numbers do not count, because they measure something: attempts, milliseconds, bytes. */
function sameness({ level, message, keys }: Entry): string {
  const texts = Object.entries(keys).filter(([key, value]) => !passKeys.has(key) && typeof value !== "number");
  const significant = texts.map(([key, value]) => [key, key === "error" ? errorText(value) : value]);
  return createHash("sha256")
    .update(JSON.stringify([level, message, significant]))
    .digest("base64");
}

/** Without the stack, which has a line for each way to the same error. */
function errorText(error: Plain): Plain {
  if (typeof error !== "object" || error === null || Array.isArray(error)) return error;
  return [error["name"], error["message"], errorText(error["cause"])];
}
