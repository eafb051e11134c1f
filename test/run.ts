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

import { givenKubeconfig } from "@pko/cluster";

import { runJob, type JobEnvironment } from "./runner/jobs.ts";
import { whenIdle } from "./runner/machine.ts";
import { skipReason } from "./runner/other-clusters.ts";
import { runPool } from "./runner/pool.ts";
import { addReports, brokenReport, skippedReport, slowest, summary, type Report } from "./runner/report.ts";
import { runCluster, startCluster, stopCluster } from "./runner/shared-cluster.ts";
import { recordResult } from "./runner/results.ts";
import { jobFor, jobsIn, suiteNames, suites, type Job, type Suite, type SuiteName } from "./runner/suites.ts";

/** End-to-end tests mostly wait, so three jobs at a time keep two cores busy. With more, each of them only waits longer for a core. */
const wantedWidth = process.env["TEST_WIDTH"];
/** While several of them wait for a minute, there is time for others. */
const poolSize = wantedWidth ? { width: Number(wantedWidth) } : { width: 3, extra: { width: 2, whenIdle } };

async function main(names: readonly string[]): Promise<boolean> {
  const recorded = process.env["KEEP"] ? recordedSuites(names) : undefined;
  const selected = await selectedJobs(names);
  const skipped = selected.map(skippedHere).filter((report) => report !== undefined);
  const jobs = selected.filter((job) => skippedHere(job) === undefined);
  if (!(await runCluster("packages"))) return false;
  const temporary = await mkdtemp(join(tmpdir(), "pko-tests-"));
  await chmod(temporary, 0o1777);
  try {
    const report = skipped.reduce(addReports, await runAll(jobs, temporary));
    console.log(`\nThe slowest tests:\n${slowest(report, 20).join("\n")}\n`);
    if (report.skips.length > 0) console.log(`Skipped:\n${report.skips.map((each) => `  – ${each}`).join("\n")}\n`);
    if (recorded) recordResult(recorded, report);
    // CI shows the end of the output only.
    for (const failure of report.failures) console.log(`✗ ${failure}\n`);
    console.log(summary(report));
    return report.failed === 0 && report.passed + report.skipped > 0;
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/** Undefined if the job can run on the cluster of this run. */
function skippedHere(job: Job): Report | undefined {
  if (givenKubeconfig === undefined) return undefined;
  const { MACHINE_ADDRESS: machineAddress, WORKSPACE_IMAGE: workspaceImage } = process.env;
  const why = skipReason(job, { machineAddress, workspaceImage });
  return why === undefined ? undefined : skippedReport(job.name, why);
}

/** Single files show little about a version. */
function recordedSuites(names: readonly string[]): readonly string[] {
  if (givenKubeconfig !== undefined || !names.every(isSuite))
    throw new Error("KEEP records results of whole suites on the local cluster: leave out FILE and CLUSTER_KUBECONFIG");
  return names.length > 0 ? names : suiteNames;
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

/**
 * Tests that need no cluster run first, next to those that start clusters themselves. Then the shared cluster starts, the
 * files that must be alone on it run, and the others run side by side with what is left of the tests without a cluster.
 */
async function runAll(jobs: readonly Job[], temporary: string): Promise<Report> {
  if (!(await prepareTools(jobs))) return brokenReport("setup");
  const using = (kind: Suite["cluster"]): Job[] => jobs.filter(({ suite }) => suites[suite].cluster === kind);
  const environment = { temporary, env: {} };
  const shared = using("shared");
  const opened = openCluster(
    { own: using("own"), exclusive: shared.filter(isExclusive), shared: shared.length },
    environment,
  );
  try {
    const queues = [
      { jobs: using(undefined), environment: Promise.resolve(environment) },
      { jobs: shared.filter((job) => !isExclusive(job)), environment: opened.then((cluster) => cluster.environment) },
    ];
    const pooled = await runPool(queues, poolSize, runJob);
    return addReports(pooled, (await opened).report);
  } finally {
    await opened;
    if (shared.length > 0) await stopCluster();
  }
}

const isExclusive = (job: Job): boolean => job.isExclusive;

interface ClusterJobs {
  readonly own: readonly Job[];
  readonly exclusive: readonly Job[];
  /** How many use the shared cluster. */
  readonly shared: number;
}

interface OpenedCluster {
  /** Of the jobs that ran alone. */
  readonly report: Report;
  readonly environment?: JobEnvironment;
}

/** A machine has one local cluster at a time, so the suite that starts its own goes first. */
async function openCluster(jobs: ClusterJobs, environment: JobEnvironment): Promise<OpenedCluster> {
  const own = await runInSeries(jobs.own, environment);
  if (jobs.shared === 0) return { report: own };
  const env = await startCluster({ cli: jobs.shared > 1 });
  if (typeof env === "string") return { report: addReports(own, brokenReport("end-to-end tests", env)) };
  const withCluster = { ...environment, env };
  const exclusive = await runInSeries(jobs.exclusive, withCluster);
  return { report: addReports(own, exclusive), environment: withCluster };
}

const runInSeries = (jobs: readonly Job[], environment: JobEnvironment): Promise<Report> =>
  runPool([{ jobs, environment: Promise.resolve(environment) }], { width: 1 }, runJob);

async function prepareTools(jobs: readonly Job[]): Promise<boolean> {
  const tools = new Set(jobs.flatMap(({ suite }) => suites[suite].tools));
  if (!(await runCluster("tools", ...tools))) return false;
  const needsImages = jobs.some(({ suite }) => suites[suite].cluster !== undefined) && givenKubeconfig === undefined;
  return !needsImages || (await runCluster("prepare"));
}

process.exit((await main(process.argv.slice(2))) ? 0 : 1);
