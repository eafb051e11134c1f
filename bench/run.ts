/** One run of the scenarios with one operator. */
import { join } from "node:path";

import { clusterKubeconfig, repositoryRoot, step } from "@pko/cluster";

import { Bed } from "./bed/bed.ts";
import type { Operator } from "./bed/operator.ts";
import type { Options } from "./options.ts";
import type { Findings, Machine, Report } from "./report/figures.ts";
import { describeMachine, loadNow } from "./report/machine.ts";
import type { Scenario, StandaloneScenario } from "./scenarios/scenario.ts";

export type ChosenScenario = Scenario | StandaloneScenario;

export const isStandalone = (scenario: ChosenScenario): scenario is StandaloneScenario => "runStandalone" in scenario;

export const openBed = async ({ namespace }: Options, signal: AbortSignal): Promise<Bed> =>
  await Bed.open({ kubeconfig: clusterKubeconfig(), namespace, signal });

export interface Run {
  readonly bed: Bed;
  readonly operator: Operator;
  readonly chosen: readonly ChosenScenario[];
  readonly options: Options;
  readonly signal: AbortSignal;
}

/** Runs the scenarios. `keep` receives the report of an interrupted run, too. */
export async function measure(
  { bed, operator, chosen, options, signal }: Run,
  keep: (report: Report) => Promise<void>,
): Promise<void> {
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
      if (found.length > 0) await keep(createReport({ operator, options }, start, found));
    } finally {
      await step("deleting everything that the benchmark created", async () => {
        await operator.scaleUp();
        await bed.clear();
      });
    }
  }
}

/** Without a cluster. */
export async function measureStandalone(
  chosen: readonly StandaloneScenario[],
  options: Options,
  signal: AbortSignal,
): Promise<Report> {
  const start: Start = { at: new Date(), machine: await describeMachine() };
  const found: Findings[] = [];
  for (const scenario of chosen) {
    found.push(await attempt(scenario, signal, (report) => scenario.runStandalone({ sizes: options.sizes, report })));
  }
  return createReport({ operator: { name: "this clone", image: "compiled" }, options }, start, found);
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

export const reportFolder = ({ startedAt }: Report, { folder }: Options): string =>
  folder ?? join(repositoryRoot, ".build/bench", startedAt.slice(0, 19).replaceAll(/[:T]/g, "-"));

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
