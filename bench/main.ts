/**
 * The benchmark: `make bench` measures the operator that is installed, whichever it is, and `make bench QUICK=1` does so in
 * a few minutes. docs/benchmarks.md tells what is measured and how.
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

async function main(options: Options, signal: AbortSignal): Promise<void> {
  for (const file of options.compare) await readReport(file);
  await clusterUp({ dns: false });
  const bed = await Bed.open({ kubeconfig: clusterKubeconfig(), namespace: options.namespace, signal });
  const operator = await installedOperator(bed, options);
  console.error(`measuring ${operator.name} (${operator.image})`);
  const began: Begin = { at: new Date(), machine: await describeMachine(bed.client) };
  const found: Findings[] = [];
  try {
    await step("making a namespace, and the first Stack in it", () => bed.make(operator));
    for (const scenario of chosen(options)) found.push(await attempt(scenario, { bed, operator, options }));
  } finally {
    try {
      // Also of a run that was cut short.
      if (found.length > 0) await tell(reportOf({ operator, options }, began, found), options);
    } finally {
      await step("removing what the benchmark made", async () => {
        await operator.callBack();
        await bed.clear();
      });
    }
  }
}

interface Begin {
  readonly at: Date;
  readonly machine: Machine;
}

function reportOf({ operator, options }: Omit<Place, "bed">, began: Begin, found: readonly Findings[]): Report {
  const { machine } = began;
  return {
    operator: operator.name,
    image: operator.image,
    startedAt: began.at.toISOString(),
    seconds: (Date.now() - began.at.getTime()) / 1000,
    quick: options.isQuick,
    machine: { ...machine, load: [...machine.load, loadNow()] },
    figures: found.flatMap(({ figures }) => figures),
    curves: found.flatMap(({ curves = [] }) => curves),
    profiles: found.flatMap(({ profiles = [] }) => profiles),
    skipped: found.flatMap(({ skipped = [] }) => skipped),
  };
}

async function tell(report: Report, options: Options): Promise<void> {
  const others = await Promise.all(options.compare.map(readReport));
  console.log(`\n${table(report, others)}\n`);
  const name = report.startedAt.slice(0, 19).replaceAll(/[:T]/g, "-");
  const folder = options.folder ?? join(repositoryRoot, ".build/bench", name);
  for (const file of await writeReport(folder, report, others)) console.log(`  ${file}`);
}

/** Where none is installed on the local cluster, this clone's is. */
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
  if (!deployed) throw new UserError(["make deploy has installed no operator"]);
  return deployed;
}

type Chosen = (typeof scenarios)[number];

function chosen({ only }: Options): readonly Chosen[] {
  const unknown = only.filter((name) => !scenarios.some((scenario) => scenario.name === name));
  if (unknown.length > 0) {
    const known = scenarios.map(({ name }) => name).join(", ");
    throw new UserError([`ONLY names ${unknown.join(", ")}: choose from ${known}`]);
  }
  return scenarios.filter(({ name }) => only.length === 0 || only.includes(name));
}

interface Place {
  readonly bed: Bed;
  readonly operator: Operator;
  readonly options: Options;
}

/** One that fails says why in the report; the others are run all the same. */
async function attempt(scenario: Chosen, { bed, operator, options }: Place): Promise<Findings> {
  try {
    return await step(scenario.title, (progress) =>
      scenario.run({ bed, operator, options, sizes: options.sizes, say: (text) => progress.report(text) }),
    );
  } catch (error) {
    bed.signal.throwIfAborted();
    const reason = error instanceof Error ? error.message : String(error);
    return { figures: [], skipped: [{ title: scenario.title, reason }] };
  }
}

const ended = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.once(name, () => ended.abort(new UserError(["the benchmark was ended before its time"])));
}
try {
  await main(parseOptions(process.env), ended.signal);
  process.exit(0);
} catch (error) {
  const lines =
    error instanceof UserError
      ? error.problems
      : [error instanceof Error ? (error.stack ?? error.message) : String(error)];
  for (const line of lines) console.error(`error: ${line}`);
  process.exit(1);
}
