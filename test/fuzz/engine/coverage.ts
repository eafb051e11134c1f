/** Which branches an input has reached, and how often. Loaded before the modules under test, which it instruments. */
import { plugin } from "bun";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { counters, instrument } from "./instrument.ts";

const maxCounters = 1 << 16;
const counts = new Uint32Array(maxCounters);
let used = 0;
const words = new Set<string>();
Object.assign(globalThis, { [counters]: counts });

const packages = join(import.meta.dir, "../../../packages");

plugin({
  name: "coverage",
  setup(build) {
    build.onLoad({ filter: new RegExp(`^${RegExp.escape(packages)}/.*/src/.*(?<!\\.d)\\.ts$`) }, ({ path }) => {
      const module = instrument(readFileSync(path, "utf8"), () => used++ % maxCounters);
      for (const word of module.words) words.add(word);
      return { contents: module.source, loader: "ts" };
    });
  },
});

/** The text literals of all modules that were loaded, except paths of modules and sentences. */
export const knownWords = (): readonly string[] => [...words].filter((word) => !/^\.|^node:| .* /.test(word));

/** How often a branch was taken, in steps that double: 9 times is the same as 15 times. */
const bucket = (count: number): number => (count < 4 ? count : 2 + Math.min(30, 32 - Math.clz32(count)));

/** Everything that inputs have reached so far. */
export class Coverage {
  /** A bit for each bucket. */
  readonly #seen = new Uint32Array(maxCounters);
  readonly #countsOnce: boolean;

  /** `countsOnce`: it does not matter how often a branch is taken. */
  constructor({ countsOnce = false } = {}) {
    this.#countsOnce = countsOnce;
  }

  /** Runs the function, and returns how many counts it reached that no earlier one did. */
  async measure(run: () => void | Promise<void>): Promise<number> {
    const end = Math.min(used, maxCounters);
    counts.fill(0, 0, end);
    await run();
    return this.#addCounts();
  }

  /** How many branches were reached. */
  get branches(): number {
    return this.#seen.reduce((sum, bits) => sum + (bits === 0 ? 0 : 1), 0);
  }

  #addCounts(): number {
    const end = Math.min(used, maxCounters);
    let added = 0;
    for (let index = 0; index < end; index++) {
      const count = counts[index] ?? 0;
      if (count === 0) continue;
      const bit = this.#countsOnce ? 1 : (1 << (bucket(count) - 1)) >>> 0;
      const seen = this.#seen[index] ?? 0;
      if ((seen & bit) !== 0) continue;
      this.#seen[index] = seen | bit;
      added++;
    }
    return added;
  }
}
