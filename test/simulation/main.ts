/**
 * `make simulate`: runs seeds, and prints the story of each that violates an invariant (docs/simulation.md).
 *
 *   SEEDS=1000    that many, from FIRST on
 *   SEED=42       only this one, with its story; LOG=1 prints the operator's log, too
 *   MUTANTS=1     plants each mistake in test/simulation/mutants, and fails if no seed finds it
 */
import { findMutants } from "./mutants.ts";
import { runSeed } from "./run.ts";
import { runSeeds } from "./seeds.ts";

const { SEEDS: seeds = "100", FIRST: first = "1", SEED: seed, MUTANTS: mutants, LOG: log } = process.env;

async function repeat(number: number): Promise<boolean> {
  const report = await runSeed(number);
  console.log(report.story.join("\n"));
  if (log === "1") console.log(report.log.join(""));
  for (const violation of report.violations) console.log(`seed ${number}: ${violation}`);
  return report.violations.length === 0;
}

async function runAll(from: number, count: number): Promise<boolean> {
  const started = performance.now();
  const total = { seeds: 0, faults: 0, writes: 0, requests: 0, virtualMs: 0 };
  const failed: number[] = [];
  for await (const report of runSeeds({ first: from, last: from + count - 1 })) {
    total.seeds++;
    total.faults += report.faults;
    total.writes += report.writes;
    total.requests += report.requests;
    total.virtualMs += report.virtualMs;
    if (report.violations.length === 0) continue;
    failed.push(report.seed);
    console.log(report.story?.join("\n"));
    for (const violation of report.violations) console.log(`seed ${report.seed}: ${violation}`);
  }
  const seconds = (performance.now() - started) / 1000;
  console.log(
    `${total.seeds} seeds, ${total.faults} faults, ${total.writes} changes of stacks, ${total.requests} requests, ` +
      `${Math.round(total.virtualMs / 3_600_000)} hours in ${Math.round(seconds)} s ` +
      `(${(total.seeds / seconds).toFixed(1)} seeds per second): ${failed.length} with violations`,
  );
  if (failed.length > 0) console.log(`repeat one with: make simulate SEED=${failed[0]}`);
  return failed.length === 0 && total.seeds === count;
}

async function main(): Promise<boolean> {
  if (mutants === "1") return await findMutants(Number(seeds));
  return seed === undefined ? await runAll(Number(first), Number(seeds)) : await repeat(Number(seed));
}

process.exit((await main()) ? 0 : 1);
