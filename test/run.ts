/**
 * `make test`: builds what the tests need, runs them in parallel, and combines their reports.
 *
 *   run.ts                 every suite
 *   run.ts unit e2e        these suites
 *   run.ts test/x.test.ts  one file, with the setup of its suite
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { runJobs, type JobEnvironment } from "./runner/jobs.ts";
import { addReports, brokenReport, emptyReport, slowest, summary, type Report } from "./runner/report.ts";
import {
  jobFor,
  jobsIn,
  repositoryRoot,
  suiteNames,
  suites,
  type Job,
  type Suite,
  type SuiteName,
} from "./runner/suites.ts";

const cluster = [process.execPath, join(repositoryRoot, "hack/cluster/src/main.ts")];
/** End-to-end tests mostly wait, so three at a time keep two cores busy. */
const width = Number(process.env["TEST_WIDTH"] || 3);

async function main(names: readonly string[]): Promise<boolean> {
  const jobs = await selectedJobs(names);
  if (!(await succeeds([...cluster, "packages"]))) return false;
  const temporary = await mkdtemp(join(tmpdir(), "pko-tests-"));
  await chmod(temporary, 0o1777);
  try {
    const report = await runAll(jobs, temporary);
    console.log(`\nThe slowest tests:\n${slowest(report, 20).join("\n")}\n`);
    // CI shows the end of the output only.
    for (const failure of report.failures) console.log(`✗ ${failure}\n`);
    console.log(summary(report));
    return report.failed === 0 && report.passed > 0;
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

async function selectedJobs(names: readonly string[]): Promise<Job[]> {
  const wanted = names.length > 0 ? names : suiteNames;
  const jobs = await Promise.all(
    wanted.map(async (name) => (isSuite(name) ? await jobsIn(name) : [await fileJob(name)])),
  );
  return jobs.flat();
}

const isSuite = (name: string): name is SuiteName => suiteNames.includes(name as SuiteName);

async function fileJob(file: string): Promise<Job> {
  const job = await jobFor(file);
  if (!job) throw new Error(`${file} is neither a test file nor a suite: the suites are ${suiteNames.join(", ")}`);
  return job;
}

/** First the tests that need no cluster, in parallel with those that start their own; then those that share one. */
async function runAll(jobs: readonly Job[], temporary: string): Promise<Report> {
  const using = (kind: Suite["cluster"]): Job[] => jobs.filter(({ suite }) => suites[suite].cluster === kind);
  if (!(await prepareTools(jobs))) return brokenReport("setup");
  const own = runJobs(using("own"), 1, { temporary, env: {} });
  const plain = runJobs(using(undefined), width, { temporary, env: {} });
  const first = addReports(await plain, await own);
  return addReports(first, await onSharedCluster(using("shared"), temporary));
}

async function prepareTools(jobs: readonly Job[]): Promise<boolean> {
  const tools = new Set(jobs.flatMap(({ suite }) => suites[suite].tools));
  if (!(await succeeds([...cluster, "tools", ...tools]))) return false;
  const needsImages =
    jobs.some(({ suite }) => suites[suite].cluster !== undefined) && !process.env["CLUSTER_KUBECONFIG"];
  return !needsImages || (await succeeds([...cluster, "prepare"]));
}

/** Starts a new cluster, so that leftovers do not matter; the user's own cluster is used without changes. */
async function onSharedCluster(jobs: readonly Job[], temporary: string): Promise<Report> {
  if (jobs.length === 0) return emptyReport;
  try {
    if (!(await succeeds([...cluster, "down"])) || !(await succeeds([...cluster, "up"]))) {
      return brokenReport("the local cluster");
    }
    const environment: JobEnvironment = { temporary, env: await publishedImage() };
    const shared = await runJobs(
      jobs.filter(({ isExclusive }) => !isExclusive),
      width,
      environment,
    );
    const exclusive = await runJobs(
      jobs.filter(({ isExclusive }) => isExclusive),
      1,
      environment,
    );
    return addReports(shared, exclusive);
  } finally {
    await succeeds([...cluster, "down"]);
  }
}

/** Built once, because parallel processes would overwrite each other's executables. */
async function publishedImage(): Promise<Record<string, string>> {
  if (process.env["CLUSTER_KUBECONFIG"]) return {};
  const { publishOperatorImage } = await import("@pko/cluster");
  return { TEST_OPERATOR_IMAGE: await publishOperatorImage() };
}

async function succeeds(command: readonly string[]): Promise<boolean> {
  const child = Bun.spawn([...command], { cwd: repositoryRoot, stdin: "ignore", stdout: "inherit", stderr: "inherit" });
  return (await child.exited) === 0;
}

process.exit((await main(process.argv.slice(2))) ? 0 : 1);
