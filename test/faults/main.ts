/** `make faults`: the operator is killed before and after every write and every call that it makes. */
import { newSeed, stopShared } from "@pko/testkit";

import { runCampaign, type Report, type Tally } from "./campaign.ts";
import { faults } from "./judgement.ts";
import { isPassed, summarize } from "./summary.ts";
import { phases, storyNames } from "./script.ts";
import { setStage } from "./stage.ts";

const width = Number(process.env["FAULTS_WIDTH"] ?? 3);
/** A regular expression: only the points whose text matches. */
const only = process.env["FAULTS"];
/** Names of lifecycles, separated by commas; all if absent. */
const selected = process.env["FAULTS_STORIES"]?.split(",");
const sample = process.env["FAULTS_SAMPLE"];
const crashMode = process.env["FAULTS_MODE"] === "freeze" ? "freeze" : "kill";

async function main(): Promise<boolean> {
  const startedAt = performance.now();
  const minutes = (): string => ((performance.now() - startedAt) / 60_000).toFixed(1);
  const stopping = new AbortController();
  process.once("SIGINT", () => {
    console.log("no further lifecycle starts; press Ctrl-C again to stop immediately");
    stopping.abort();
  });
  const stage = await setStage();
  try {
    const report = await runCampaign({
      stage,
      width,
      stories: storyNames.filter((name) => selected?.includes(name) ?? true),
      seed: newSeed("order of the crash points"),
      crashMode,
      signal: stopping.signal,
      ...(only !== undefined && { only: new RegExp(only) }),
      ...(sample !== undefined && { sample: Object.fromEntries(storyNames.map((name) => [name, Number(sample)])) }),
      log: (text) => console.log(`[${minutes()} min] ${text}`),
    });
    print(report);
    console.log(`\n${summarize([...report.values()])}; ${minutes()} minutes`);
    return isPassed([...report.values()]);
  } finally {
    await stage[Symbol.asyncDispose]();
    await stopShared();
  }
}

const head = [
  "phase",
  "calls",
  "points",
  "before",
  "during",
  "after",
  "response lost",
  "missed",
  ...faults,
  "median",
  "slowest",
];
const seconds = (ms = 0): string => `${(ms / 1000).toFixed(1)} s`;

function tableRow({ calls, points, hits, missed, failures, times }: Tally): (string | number)[] {
  const sorted = times.toSorted((a, b) => a - b);
  return [
    calls,
    points,
    hits.before,
    hits.during,
    hits.after,
    hits.lost,
    missed.length,
    ...faults.map((fault) => failures.filter(({ kind }) => kind === fault).length),
    seconds(sorted[Math.floor(sorted.length / 2)]),
    seconds(sorted.at(-1)),
  ];
}

function print(report: Report): void {
  const rows = phases.flatMap((phase) => {
    const tally = report.get(phase);
    return tally ? [[phase, ...tableRow(tally)]] : [];
  });
  const sums = head.slice(1, -2).map((_, column) => rows.reduce((sum, row) => sum + Number(row[column + 1]), 0));
  const table = [head, ...rows, ["all", ...sums]].map((row) => row.map(String));
  const widths = head.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  console.log("");
  for (const row of table) {
    const cells = row.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
    );
    console.log(cells.join("  "));
  }
  for (const { missed } of report.values()) for (const point of missed) console.log(`missed: ${point}`);
  for (const { failures } of report.values())
    for (const { kind, text } of failures) console.log(`FAILED (${kind}) ${text}`);
}

process.exit((await main()) ? 0 : 1);
