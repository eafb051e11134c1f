/**
 * `make mutants`: changes the pure rules of the controllers one mistake at a time, and runs their unit tests. A mistake that
 * no test notices is printed with its place. Exits with 1 if fewer than `leastKilled` of them are noticed.
 *
 *   main.ts                                        every rule
 *   main.ts packages/operator/src/stack/rules/     these only
 */
import { Glob } from "bun";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { repositoryRoot } from "../runner/suites.ts";
import { applied, mutantsOf, type Mutant } from "./mutate.ts";

const width = Number(process.env["TEST_WIDTH"] || 2);
const leastKilled = 0.9;
const timeoutMs = 60_000;

interface Job {
  readonly file: string;
  readonly source: string;
  readonly mutant: Mutant;
}

async function main(prefixes: readonly string[]): Promise<boolean> {
  const files = (await rules()).filter(
    (file) => prefixes.length === 0 || prefixes.some((each) => file.startsWith(each)),
  );
  const jobs = files.flatMap((file) => {
    const source = readFileSync(join(repositoryRoot, file), "utf8");
    return mutantsOf(source).map((mutant): Job => ({ file, source, mutant }));
  });
  if (jobs.length === 0) throw new Error("no rule to change");
  const survivors: Job[] = [];
  const waiting = [...jobs];
  const worker = async (): Promise<void> => {
    for (let job = waiting.shift(); job; job = waiting.shift()) if (!(await isKilled(job))) survivors.push(job);
  };
  await Promise.all(Array.from({ length: width }, worker));
  for (const { file, source, mutant } of survivors.toSorted(byPlace)) {
    console.log(`${file}:${mutant.line} ${source.slice(mutant.start, mutant.end)} → ${mutant.replacement}`);
  }
  const killed = jobs.length - survivors.length;
  console.log(`${jobs.length} mutants, ${killed} killed (${((100 * killed) / jobs.length).toFixed(1)} %)`);
  return killed / jobs.length >= leastKilled;
}

async function rules(): Promise<string[]> {
  const found = await Array.fromAsync(new Glob("packages/operator/src/*/rules/**/*.ts").scan({ cwd: repositoryRoot }));
  return found.filter((file) => !file.endsWith(".test.ts")).toSorted();
}

/** By the unit tests of its controller. One that never ends is noticed, too. */
async function isKilled({ file, source, mutant }: Job): Promise<boolean> {
  const tests = file.slice(0, file.indexOf("/rules/"));
  const preload = join(import.meta.dir, "preload.ts");
  const child = Bun.spawn([process.execPath, "test", "--bail", `--preload=${preload}`, `./${tests}`], {
    cwd: repositoryRoot,
    env: { ...process.env, MUTANT_FILE: join(repositoryRoot, file), MUTANT_SOURCE: applied(source, mutant) },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
    timeout: timeoutMs,
  });
  return (await child.exited) !== 0;
}

const byPlace = (a: Job, b: Job): number =>
  (a.file < b.file ? -1 : Number(a.file > b.file)) || a.mutant.line - b.mutant.line;

process.exit((await main(process.argv.slice(2))) ? 0 : 1);
