/**
 * `make mutants`: changes the pure rules of the controllers one mistake at a time, and runs their unit tests. A mistake that
 * no test notices is printed with its place, and with its reason if `survivors.json` has one. Exits with 1 if too few of
 * them are noticed, or if a run of all rules shows one without a reason, or that an entry of `survivors.json` is stale.
 *
 *   main.ts                                        every rule
 *   main.ts packages/operator/src/stack/rules/     these only
 */
import { Glob } from "bun";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { repositoryRoot } from "../runner/suites.ts";
import { applied, mutantsOf, type Mutant } from "./mutate.ts";
import { changeOf, compareSurvivors, failuresOf, type Change, type KnownSurvivor } from "./survivors.ts";

const width = Number(process.env["TEST_WIDTH"] || 2);
const timeoutMs = 60_000;

interface Job extends Change {
  readonly source: string;
  readonly mutant: Mutant;
}

async function main(prefixes: readonly string[]): Promise<boolean> {
  const files = (await rules()).filter(
    (file) => prefixes.length === 0 || prefixes.some((each) => file.startsWith(each)),
  );
  const jobs = files.flatMap((file) => {
    const source = readFileSync(join(repositoryRoot, file), "utf8");
    return mutantsOf(source).map((mutant): Job => Object.assign(changeOf(file, source, mutant), { source, mutant }));
  });
  if (jobs.length === 0) throw new Error("no rule to change");
  await expectUnchangedToPass(files);
  const first = await resultsOf(jobs, width);
  // Beside other tests, they may just have been slow.
  const second = await resultsOf(first.hanging, 1);
  const survivors = [...first.survivors, ...second.survivors];
  const { known, unknown, stale } = compareSurvivors(survivors, listedSurvivors());
  print("No test has noticed, for a known reason:", known);
  print("No test has noticed:", unknown);
  print(`The tests took more than ${timeoutMs / 1000} s, twice, with:`, second.hanging);
  const killed = jobs.length - survivors.length;
  console.log(`${jobs.length} mutants, ${killed} killed (${((100 * killed) / jobs.length).toFixed(1)} %)`);
  const survived = `${known.length} survived for a known reason, ${unknown.length} without`;
  console.log(`${survived}; ${second.hanging.length} of the killed timed out`);
  const isComplete = prefixes.length === 0;
  if (isComplete && stale.length > 0) console.log(`Stale:\n${JSON.stringify(stale, null, 2)}`);
  const counts = { all: jobs.length, killed, unknown: unknown.length, stale: stale.length };
  const failures = failuresOf({ ...counts, isComplete });
  for (const failure of failures) console.log(`failed: ${failure}`);
  return failures.length === 0;
}

interface Results {
  readonly survivors: readonly Job[];
  readonly hanging: readonly Job[];
}

/** Of that many processes at a time. */
async function resultsOf(jobs: readonly Job[], width: number): Promise<Results> {
  const survivors: Job[] = [];
  const hanging: Job[] = [];
  const waiting = [...jobs];
  const worker = async (): Promise<void> => {
    for (let job = waiting.shift(); job; job = waiting.shift()) {
      const result = await testResult(job.file, applied(job.source, job.mutant));
      if (result === "passed") survivors.push(job);
      if (result === "timed out") hanging.push(job);
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
  return { survivors, hanging };
}

const listedSurvivors = (): KnownSurvivor[] =>
  JSON.parse(readFileSync(join(import.meta.dir, "survivors.json"), "utf8")) as KnownSurvivor[];

/** Otherwise, every mutant would count as killed. */
async function expectUnchangedToPass(files: readonly string[]): Promise<void> {
  const ofEachController = Map.groupBy(files, testsOf);
  for (const [tests, [file = ""]] of ofEachController) {
    const result = await testResult(file, readFileSync(join(repositoryRoot, file), "utf8"));
    if (result !== "passed") throw new Error(`${tests}: the tests have ${result} without a mutant; repair them first`);
  }
}

/** With what an entry of `survivors.json` needs. */
function print(title: string, jobs: readonly (Job & Partial<KnownSurvivor>)[]): void {
  if (jobs.length === 0) return;
  console.log(title);
  for (const { file, before, after, reason, mutant } of jobs.toSorted(byPlace)) {
    console.log(`${file}:${mutant.line}${reason === undefined ? "" : `: ${reason}`}\n  - ${before}\n  + ${after}`);
  }
}

async function rules(): Promise<string[]> {
  const found = await Array.fromAsync(new Glob("packages/operator/src/*/rules/**/*.ts").scan({ cwd: repositoryRoot }));
  return found.filter((file) => !file.endsWith(".test.ts")).toSorted();
}

/** The unit tests of the file's controller. */
const testsOf = (file: string): string => file.slice(0, file.indexOf("/rules/"));

/** With this text in the file. A mutant whose tests never end is noticed, too. */
async function testResult(file: string, source: string): Promise<"passed" | "failed" | "timed out"> {
  const preload = join(import.meta.dir, "preload.ts");
  const child = Bun.spawn([process.execPath, "test", "--bail", `--preload=${preload}`, `./${testsOf(file)}`], {
    cwd: repositoryRoot,
    env: { ...process.env, MUTANT_FILE: join(repositoryRoot, file), MUTANT_SOURCE: source },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
    timeout: timeoutMs,
  });
  const code = await child.exited;
  if (child.signalCode !== null) return "timed out";
  return code === 0 ? "passed" : "failed";
}

const byPlace = (a: Job, b: Job): number =>
  (a.file < b.file ? -1 : Number(a.file > b.file)) || a.mutant.line - b.mutant.line;

process.exit((await main(process.argv.slice(2))) ? 0 : 1);
