/** Two operators that took turns on one cluster, as a table for the terminal. Pure. */
import type { Figure, Report } from "./figures.ts";
import { describeReport, noteLines, operatorName, skippedLines } from "./table.ts";
import { amount, columns, type Row } from "./text.ts";

const headings = ["n", "median", "95 %", "× bare CLI"];

export function sideBySide(report: Report, other: Report): string {
  const theirs = new Map(other.figures.map((figure) => [figure.id, figure]));
  const ours = new Set(report.figures.map(({ id }) => id));
  const rows = [
    ...report.figures.map((figure) => row(figure, figure, theirs.get(figure.id))),
    ...other.figures.filter(({ id }) => !ours.has(id)).map((figure) => row(figure, undefined, figure)),
  ];
  const heading = ["", ...headings.map((each) => `A ${each}`), ...headings.map((each) => `B ${each}`), "B / A"];
  const [top = "", ...lines] = columns([heading, ...rows]);
  return [
    `A          ${operatorName(report)}`,
    `B          ${operatorName(other)}`,
    ...describeReport(report),
    "",
    top,
    "─".repeat(Math.max(top.length, ...lines.map((line) => line.length))),
    ...lines,
    ...noteLines(report),
    ...skippedLines(report).map((line) => line.replace("not measured", "A not measured")),
    ...skippedLines(other).map((line) => line.replace("not measured", "B not measured")),
  ].join("\n");
}

function row({ title }: Figure, ours: Figure | undefined, theirs: Figure | undefined): Row {
  return [title, ...cells(ours), ...cells(theirs), quotient(ours, theirs)];
}

function cells(figure: Figure | undefined): string[] {
  if (!figure) return ["–", "–", "–", "–"];
  const { summary, unit, ratio } = figure;
  const p95 = summary.runs === 1 ? "" : amount(summary.p95, unit);
  return [String(summary.runs), amount(summary.median, unit), p95, ratio ? ratio.median.toFixed(1) : ""];
}

function quotient(ours: Figure | undefined, theirs: Figure | undefined): string {
  const [a, b] = [ours?.summary.median ?? 0, theirs?.summary.median ?? 0];
  return a > 0 && theirs ? (b / a).toFixed(1) : "";
}
