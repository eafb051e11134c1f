/** Two operators take turns on one cluster: `make bench AGAINST=<manifest or chart>`. */
import { join } from "node:path";

import { clusterKubeconfig, deployableImage, imageValues, repositoryRoot, step, UserError } from "@pko/cluster";
import { kubeconfigCredentials, serverVersion, type KubeObject } from "@pko/kube";

import { Installation, readInstallation } from "./bed/installation.ts";
import { findOperator } from "./bed/operator.ts";
import type { Options } from "./options.ts";
import type { Report } from "./report/figures.ts";
import { mergeReports } from "./report/merge.ts";
import { sideBySide } from "./report/side-by-side.ts";
import { writeJson, writeReport } from "./report/write.ts";
import { measure, openBed, reportFolder, type Run } from "./run.ts";
import type { Sizes } from "./scenarios/sizes.ts";

/** This operator and another take turns on the cluster, in changing order, so that both meet the same load of the machine. */
export async function compareOperators(against: string, run: Omit<Run, "bed" | "operator">): Promise<void> {
  const { options, signal } = run;
  const cluster = await openBed(options, signal);
  const present = await findOperator(cluster.client);
  if (present)
    throw new UserError([`${present.name} is installed: with AGAINST, the benchmark installs both operators`]);
  // `helm template` does not read it from the cluster, and a chart may require a version.
  const flags = [`--kube-version=${await serverVersion(await kubeconfigCredentials(clusterKubeconfig()))}`];
  const contenders = [await ownInstallation(flags), await readInstallation(against, flags)].map((objects) => ({
    installation: new Installation(objects, cluster),
    reports: [] as Report[],
  }));
  const share = { ...options, sizes: shareOfRounds(options) };
  try {
    for (let turn = 0; turn < options.turns; turn += 1) {
      for (const { installation, reports } of turn % 2 === 0 ? contenders : contenders.toReversed()) {
        await takeTurn(installation, { ...run, options: share }, async (report) => void reports.push(report));
      }
    }
  } finally {
    const [ours, theirs] = contenders.map(({ reports: [first, ...others] }) => first && mergeReports(first, ...others));
    if (ours && theirs) await printComparison(ours, theirs, options);
  }
}

async function takeTurn(
  installation: Installation,
  run: Omit<Run, "bed" | "operator">,
  keep: (report: Report) => Promise<void>,
): Promise<void> {
  const end = new AbortController();
  const bed = await openBed(run.options, AbortSignal.any([run.signal, end.signal]));
  try {
    const operator = await step("installing the operator", () => installation.install());
    await measure({ ...run, bed, operator }, keep);
  } finally {
    end.abort();
    await step("removing the operator", () => installation.remove());
  }
}

const shareOfRounds = ({ sizes, turns }: Options): Sizes => ({ ...sizes, rounds: Math.ceil(sizes.rounds / turns) });

async function ownInstallation(flags: readonly string[]): Promise<KubeObject[]> {
  const values = [`--values=${join(repositoryRoot, "bench/values.yaml")}`, ...imageValues(await deployableImage())];
  return await readInstallation(join(repositoryRoot, "charts/pulumi-kubernetes-operator"), [...flags, ...values]);
}

async function printComparison(ours: Report, theirs: Report, options: Options): Promise<void> {
  console.log(`\n${sideBySide(ours, theirs)}\n`);
  const folder = reportFolder(ours, options);
  const files = [...(await writeReport(folder, ours, [theirs])), await writeJson(folder, "against.json", theirs)];
  for (const file of files) console.log(`  ${file}`);
}
