/**
 * `make simulate`: runs seeds, and prints the story of each that violates an invariant (docs/simulation.md).
 *
 *   SEEDS=1000    that many, from FIRST on
 *   SEED=42       only this one, with its story; LOG=1 prints the operator's log, too
 *   MUTANTS=1     plants each mistake in test/simulation/mutants, or that of this name, and fails if no seed finds it
 */
import { constants, getPriority, setPriority } from "node:os";

import { findMutants } from "./mutants.ts";
import { runSeed } from "./run.ts";
import { runSeeds, type WorkerReport } from "./seeds.ts";

const { SEEDS: seeds = "100", FIRST: first = "1", SEED: seed, MUTANTS: mutants, LOG: log } = process.env;

async function repeat(number: number): Promise<boolean> {
  const report = await runSeed(number);
  console.log(report.story.join("\n"));
  if (log === "1") console.log(report.log.join(""));
  for (const violation of report.violations) console.log(`seed ${number}: ${violation}`);
  return report.violations.length === 0;
}

/** Of all seeds so far. */
class Summary {
  readonly #started = performance.now();
  readonly #total = { seeds: 0, faults: 0, writes: 0, requests: 0, virtualMs: 0 };
  readonly #failed: number[] = [];

  add(report: WorkerReport): void {
    const total = this.#total;
    total.seeds++;
    for (const count of ["faults", "writes", "requests", "virtualMs"] as const) total[count] += report[count];
    if (report.violations.length > 0) this.#failed.push(report.seed);
  }

  get seeds(): number {
    return this.#total.seeds;
  }

  get hasFailed(): boolean {
    return this.#failed.length > 0;
  }

  get text(): string {
    const { seeds: count, faults, writes, requests, virtualMs } = this.#total;
    const seconds = (performance.now() - this.#started) / 1000;
    const failed = this.#failed.toSorted((a, b) => a - b);
    return (
      `${count} seeds, ${faults} faults, ${writes} changes of stacks, ${requests} requests, ` +
      `${Math.round(virtualMs / 3_600_000)} hours in ${Math.round(seconds)} s ` +
      `(${(count / seconds).toFixed(1)} seeds per second): ${failed.length} with violations` +
      (failed.length > 0 ? `: ${failed.join(" ")}\nrepeat one with: make simulate SEED=${failed[0]}` : "")
    );
  }
}

const progressEvery = 500;

/** An interrupted run prints what it has done. */
async function runAll(from: number, count: number): Promise<boolean> {
  const summary = new Summary();
  for await (const report of runSeeds({ first: from, last: from + count - 1, signal: interrupted() })) {
    summary.add(report);
    if (report.violations.length > 0) console.log(report.story?.join("\n"));
    for (const violation of report.violations) console.log(`seed ${report.seed}: ${violation}`);
    if (summary.seeds % progressEvery === 0 && summary.seeds < count) console.log(summary.text);
  }
  const isComplete = summary.seeds === count;
  console.log(isComplete ? summary.text : `interrupted before the end of ${count} seeds\n${summary.text}`);
  return isComplete && !summary.hasFailed;
}

/** Without this, the processes that run seeds would continue. */
function interrupted(): AbortSignal {
  const interruption = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => interruption.abort());
  return interruption.signal;
}

async function main(): Promise<boolean> {
  // Many seeds may take an hour.
  setPriority(Math.max(getPriority(), constants.priority.PRIORITY_BELOW_NORMAL));
  if (mutants !== undefined) {
    return await findMutants({
      name: mutants === "1" ? "*" : mutants,
      maxSeeds: Number(seeds),
      signal: interrupted(),
    });
  }
  return seed === undefined ? await runAll(Number(first), Number(seeds)) : await repeat(Number(seed));
}

process.exit((await main()) ? 0 : 1);
