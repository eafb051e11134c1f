/** Runs a job in its own process and keeps its output together. */
import { chmod, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";

import { goProgramEnv } from "@pko/cluster";

import { addReports, brokenReport, parseReport, seedLines, summary, type Report } from "./report.ts";
import { repositoryRoot, type Job } from "./suites.ts";

export interface JobEnvironment {
  /** Removed after the run, including what tests left in it. */
  readonly temporary: string;
  readonly env: Readonly<Record<string, string>>;
}

/** The first test of a process also starts the API server. Bun kills all child processes of a process in which a test times out. */
const testTimeoutMs = 180_000;

export async function runJob(job: Job, { temporary, env }: JobEnvironment): Promise<Report> {
  const folder = join(temporary, job.name.replaceAll("/", "-"));
  // World-writable with the sticky bit, like /tmp: some tests run as other users.
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o1777);
  const outfile = join(temporary, `${job.name.replaceAll("/", "-")}.xml`);
  const started = performance.now();
  const reporter = ["--reporter=junit", `--reporter-outfile=${outfile}`];
  const command = [process.execPath, "test", `--timeout=${testTimeoutMs}`, ...reporter, ...job.files.map(asPath)];
  // The kernel ends it with this process, whatever ends this process.
  const child = Bun.spawn(["setpriv", "--pdeathsig", "KILL", "--", ...command], {
    cwd: repositoryRoot,
    env: { ...process.env, ...goProgramEnv, ...env, TMPDIR: folder, TEST_PROGRAMS: join(temporary, "programs") },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  const report = checkedReport(job, code, parseReport(await readFile(outfile, "utf8").catch(() => "")));
  const seconds = Math.round((performance.now() - started) / 1000);
  if (report.failed > 0) console.log(`\n${stdout}${stderr}`);
  const cpu = Math.round(Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6);
  console.log(`${report.failed > 0 ? "✗" : "✓"} ${job.name} (${seconds} s, ${cpu} s of CPU): ${summary(report)}`);
  for (const line of seedLines(stdout)) console.log(`    ${line}`);
  return report;
}

/** `bun test` would treat a bare name as a pattern. */
const asPath = (file: string): string => `./${file}`;

function checkedReport(job: Job, code: number, report: Report): Report {
  const isComplete = report.passed + report.failed + report.skipped > 0 && (code === 0 || report.failed > 0);
  return isComplete ? report : addReports(report, brokenReport(job.name));
}
