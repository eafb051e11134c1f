/**
 * The benchmark: `make bench` measures the installed operator, this one or another, and `make bench QUICK=1` does so in a
 * few minutes. docs/benchmarks.md explains what is measured and how.
 */
import { clusterUp, givenKubeconfig, repositoryRoot, run, step, UserError } from "@pko/cluster";

import type { Bed } from "./bed/bed.ts";
import { findOperator, type Operator } from "./bed/operator.ts";
import { chosenScenarios } from "./chosen.ts";
import { compareOperators } from "./compare.ts";
import { parseOptions, type Options } from "./options.ts";
import type { Report } from "./report/figures.ts";
import { table } from "./report/table.ts";
import { readReport, writeReport } from "./report/write.ts";
import { isStandalone, measure, measureStandalone, openBed, reportFolder } from "./run.ts";

async function main(options: Options, signal: AbortSignal): Promise<void> {
  for (const file of options.compare) await readReport(file);
  const chosen = chosenScenarios(options);
  const standalone = chosen.filter(isStandalone);
  if (standalone.length === chosen.length) {
    await printReport(await measureStandalone(standalone, options, signal), options);
    return;
  }
  // Other operators may address pods and Services by their names.
  await clusterUp({ dns: options.against !== undefined });
  if (options.against !== undefined) {
    await compareOperators(options.against, { chosen, options, signal });
    return;
  }
  const bed = await openBed(options, signal);
  const operator = await installedOperator(bed, options);
  await measure({ bed, operator, chosen, options, signal }, (report) => printReport(report, options));
}

async function printReport(report: Report, options: Options): Promise<void> {
  const others = await Promise.all(options.compare.map(readReport));
  console.log(`\n${table(report, others)}\n`);
  for (const file of await writeReport(reportFolder(report, options), report, others)) console.log(`  ${file}`);
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
