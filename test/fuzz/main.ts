/**
 * `make fuzz`: fuzzes all targets, and prints what was found.
 *
 *   MINUTES=60         how long, 10 minutes by default
 *   TARGETS="rpc untar" only these
 *   FUZZ_WIDTH=4       how many at a time, 2 by default
 *   TEST_SEED=42       repeats the random choices of an earlier run
 *   KEEP=1             adds inputs that reach new code to the corpus in the tree
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { newSeed } from "@pko/testkit";

import { corpusFile, readCorpus, smallCorpus } from "./engine/corpus.ts";
import { supervise, type Result } from "./engine/supervise.ts";
import { targets } from "./targets/index.ts";

const width = Math.ceil(positive("FUZZ_WIDTH", 2));
const minutes = positive("MINUTES", 10);
const wanted = (process.env["TARGETS"] ?? "").split(/\s+/).filter(Boolean);
const names = targets.map(({ name }) => name).filter((name) => wanted.length === 0 || wanted.includes(name));
const unknown = wanted.filter((name) => !names.includes(name));
if (unknown.length > 0) throw new Error(`there is no target ${unknown.join(", ")}`);

/** With another value, the run would end without an input, or never. */
function positive(name: string, otherwise: number): number {
  const given = process.env[name] || otherwise;
  const number = Number(given);
  if (number > 0 && Number.isFinite(number)) return number;
  console.error(`error: ${name} is ${JSON.stringify(given)}: give a number that is more than 0, such as ${name}=2`);
  process.exit(1);
}

/** What earlier runs on this machine have reached. */
const knownFile = (target: string): string => join(import.meta.dir, `../../.build/fuzz/${target}.json`);
const knownInputs = (target: string): string[] =>
  existsSync(knownFile(target)) ? (JSON.parse(readFileSync(knownFile(target), "utf8")) as string[]) : [];

function write(file: string, value: unknown): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}

function keep({ target: name, reaching }: Result): void {
  const target = targets.find((each) => each.name === name);
  if (target) write(corpusFile(name), smallCorpus(target, { found: readCorpus(name).found, reaching }));
}

const seed = newSeed("fuzz");
const queue = [...names];
const seconds = (minutes * 60 * Math.min(width, names.length)) / names.length;
const results: Result[] = [];

async function work(): Promise<void> {
  for (let target = queue.shift(); target !== undefined; target = queue.shift()) {
    const found = await supervise({ targets: [target], seed, seconds, inputs: { [target]: knownInputs(target) } });
    for (const result of found) report(result);
  }
}

function report(result: Result): void {
  const { target, rounds, branches, cpuSeconds, findings, reaching } = result;
  results.push(result);
  console.log(`${target.padEnd(14)} ${rounds} inputs, ${branches} branches, ${Math.round(cpuSeconds)} s of CPU`);
  for (const [problem, input] of Object.entries(findings)) console.log(`  ✗ ${problem}\n    ${JSON.stringify(input)}`);
  if (reaching.length > 0) write(knownFile(target), reaching);
  if (process.env["KEEP"] && reaching.length > 0) keep(result);
}

await Promise.all(Array.from({ length: width }, work));
const found = results.reduce((sum, { findings }) => sum + Object.keys(findings).length, 0);
const hours = results.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0) / 3600;
console.log(`\n${found} found in ${hours.toFixed(2)} CPU hours`);
process.exit(found === 0 ? 0 : 1);
