/**
 * The benchmark: `make bench` measures the installed operator, this one or another, and `make bench QUICK=1` does so in a
 * few minutes. docs/benchmarks.md explains what is measured and how.
 */
import { join } from "node:path";

import { clusterKubeconfig, clusterUp, givenKubeconfig, repositoryRoot, run, step, UserError } from "@pko/cluster";

import { Bed } from "./bed/bed.ts";
import { findOperator, type Operator } from "./bed/operator.ts";
import { parseOptions, type Options } from "./options.ts";
import type { Findings, Machine, Report } from "./report/figures.ts";
import { describeMachine, loadNow } from "./report/machine.ts";
import { table } from "./report/table.ts";
import { readReport, writeReport } from "./report/write.ts";
import { scenarios } from "./scenarios/index.ts";
import type { StandaloneScenario } from "./scenarios/scenario.ts";

async function main(options: Options, signal: AbortSignal): Promise<void> {
  for (const file of options.compare) await readReport(file);
  const chosen = chosenScenarios(options);
  const standalone = chosen.filter(isStandalone);
  if (standalone.length === chosen.length) {
    await runStandalone(standalone, options, signal);
    return;
  }
  await clusterUp({ dns: false });
  const bed = await Bed.open({ kubeconfig: clusterKubeconfig(), namespace: options.namespace, signal });
  const operator = await installedOperator(bed, options);
  console.error(`measuring ${operator.name} (${operator.image})`);
  const start: Start = { at: new Date(), machine: await describeMachine(bed.client) };
  const found: Findings[] = [];
  try {
    await step("creating a namespace and the first Stack", () => bed.setUp(operator));
    for (const scenario of chosen) {
      const { sizes } = options;
      const work = (report: (text: string) => void): Promise<Findings> =>
        isStandalone(scenario)
          ? scenario.runStandalone({ sizes, report })
          : scenario.run({ bed, operator, options, sizes, report });
      found.push(await attempt(scenario, signal, work));
    }
  } finally {
    try {
      // Also for an interrupted run.
      if (found.length > 0) await printReport(createReport({ operator, options }, start, found), options);
    } finally {
      await step("deleting everything that the benchmark created", async () => {
        await operator.scaleUp();
        await bed.clear();
      });
    }
  }
}

/** Without a cluster. */
async function runStandalone(
  chosen: readonly StandaloneScenario[],
  options: Options,
  signal: AbortSignal,
): Promise<void> {
  const start: Start = { at: new Date(), machine: await describeMachine() };
  const found: Findings[] = [];
  for (const scenario of chosen) {
    found.push(await attempt(scenario, signal, (report) => scenario.runStandalone({ sizes: options.sizes, report })));
  }
  await printReport(
    createReport({ operator: { name: "this clone", image: "compiled" }, options }, start, found),
    options,
  );
}

interface Start {
  readonly at: Date;
  readonly machine: Machine;
}

interface Measured {
  readonly operator: Pick<Operator, "name" | "image">;
  readonly options: Options;
}

function createReport({ operator, options }: Measured, start: Start, found: readonly Findings[]): Report {
  const { machine } = start;
  return {
    operator: operator.name,
    image: operator.image,
    startedAt: start.at.toISOString(),
    seconds: (Date.now() - start.at.getTime()) / 1000,
    quick: options.isQuick,
    machine: { ...machine, load: [...machine.load, loadNow()] },
    figures: found.flatMap(({ figures }) => figures),
    curves: found.flatMap(({ curves = [] }) => curves),
    profiles: found.flatMap(({ profiles = [] }) => profiles),
    skipped: found.flatMap(({ skipped = [] }) => skipped),
  };
}

async function printReport(report: Report, options: Options): Promise<void> {
  const others = await Promise.all(options.compare.map(readReport));
  console.log(`\n${table(report, others)}\n`);
  const name = report.startedAt.slice(0, 19).replaceAll(/[:T]/g, "-");
  const folder = options.folder ?? join(repositoryRoot, ".build/bench", name);
  for (const file of await writeReport(folder, report, others)) console.log(`  ${file}`);
}

/** Installs this clone's operator if none is installed on the local cluster. */
async function installedOperator(bed: Bed, options: Options): Promise<Operator> {
  const present = await findOperator(bed.client, options.operator);
  if (present) return present;
  if (givenKubeconfig !== undefined)
    throw new UserError(["no operator is installed on the cluster of CLUSTER_KUBECONFIG"]);
  const deploy = ["deploy", "VALUES=bench/values.yaml"];
  await step(`no operator is installed: make ${deploy.join(" ")}`, () =>
    run(["make", "-C", repositoryRoot, ...deploy]),
  );
  const deployed = await findOperator(bed.client, options.operator);
  if (!deployed) throw new UserError(["make deploy did not install an operator"]);
  return deployed;
}

type ChosenScenario = (typeof scenarios)[number];

function chosenScenarios({ only }: Options): readonly ChosenScenario[] {
  const unknown = only.filter((name) => !scenarios.some((scenario) => scenario.name === name));
  if (unknown.length > 0) {
    const known = scenarios.map(({ name }) => name).join(", ");
    throw new UserError([`there is no scenario ${unknown.join(", ")} (ONLY): choose from ${known}`]);
  }
  return scenarios.filter(({ name }) => only.length === 0 || only.includes(name));
}

const isStandalone = (scenario: ChosenScenario): scenario is StandaloneScenario => "runStandalone" in scenario;

/** The report shows why a scenario failed; the others still run. */
async function attempt(
  { title }: ChosenScenario,
  signal: AbortSignal,
  work: (report: (text: string) => void) => Promise<Findings>,
): Promise<Findings> {
  try {
    return await step(title, (progress) => work((text) => progress.report(text)));
  } catch (error) {
    signal.throwIfAborted();
    const reason = error instanceof Error ? error.message : String(error);
    return { figures: [], skipped: [{ title, reason }] };
  }
}

const interrupted = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.once(name, () => interrupted.abort(new UserError(["the benchmark was interrupted"])));
}
try {
  await main(parseOptions(process.env), interrupted.signal);
  process.exit(0);
} catch (error) {
  const lines =
    error instanceof UserError
      ? error.problems
      : [error instanceof Error ? (error.stack ?? error.message) : String(error)];
  for (const line of lines) console.error(`error: ${line}`);
  process.exit(1);
}
