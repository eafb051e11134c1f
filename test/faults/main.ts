/** `make faults`: the operator is killed before and after every write and every call that it makes. */
import { stopSharedApiServer } from "@pko/testkit";

import { runCampaign, type Report } from "./campaign.ts";
import { phases, type Phase } from "./life.ts";
import { setStage } from "./stage.ts";

const width = Number(process.env["FAULTS_WIDTH"] ?? 3);
const only = process.env["FAULTS_PHASES"]?.split(",") as Phase[] | undefined;
const sample = process.env["FAULTS_SAMPLE"];

async function main(): Promise<boolean> {
  const begunAt = performance.now();
  const minutes = (): string => ((performance.now() - begunAt) / 60_000).toFixed(1);
  const stage = await setStage();
  try {
    const report = await runCampaign({
      stage,
      width,
      ...(only && { only }),
      ...(sample !== undefined && { sample: Number(sample) }),
      say: (text) => console.log(`[${minutes()} min] ${text}`),
    });
    print(report);
    console.log(`\n${minutes()} minutes`);
    return [...report.values()].every(({ failures }) => failures.length === 0);
  } finally {
    await stage[Symbol.asyncDispose]();
    await stopSharedApiServer();
  }
}

function print(report: Report): void {
  const head = [
    "phase",
    "calls",
    "points",
    "before",
    "during",
    "after",
    "lost",
    "missed",
    "failed",
    "median",
    "slowest",
  ];
  const rows = phases.map((phase) => {
    const tally = report.get(phase);
    if (!tally) return [phase];
    const { hits, times } = tally;
    const sorted = times.toSorted((a, b) => a - b);
    const seconds = (ms = 0): string => `${(ms / 1000).toFixed(1)} s`;
    return [
      phase,
      tally.calls,
      tally.points,
      hits.before,
      hits.during,
      hits.after,
      hits.lost,
      tally.missed.length,
      tally.failures.length,
      seconds(sorted[Math.floor(sorted.length / 2)]),
      seconds(sorted.at(-1)),
    ].map(String);
  });
  const sums = head.map((_, column) => {
    if (column === 0) return "all";
    if (column > 8) return "";
    return String(rows.reduce((sum, row) => sum + Number(row[column] ?? 0), 0));
  });
  const table = [head, ...rows, sums];
  const widths = head.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  console.log("");
  for (const row of table) {
    console.log(
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
        .join("  "),
    );
  }
  for (const { missed } of report.values()) for (const point of missed) console.log(`missed: ${point}`);
  for (const { failures } of report.values()) for (const failure of failures) console.log(`FAILED ${failure}`);
}

process.exit((await main()) ? 0 : 1);
