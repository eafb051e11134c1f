/** The report as a table for the terminal. Pure. */
import type { Figure, Report } from "./figures.ts";
import { amount, columns, type Row } from "./text.ts";

/** `others` are reports of earlier runs or of other operators, one column each. */
export function table(report: Report, others: readonly Report[] = []): string {
  const names = others.map(operatorName);
  const heading: Row = ["", "median", "95 %", "runs", "× bare CLI", ...names];
  const rows = report.figures.map((figure) => figureRow(figure, others));
  const [top = "", ...lines] = columns([heading, ...rows]);
  const rule = "─".repeat(Math.max(top.length, ...lines.map((line) => line.length)));
  return [
    `operator   ${operatorName(report)}`,
    ...describeReport(report),
    "",
    top,
    rule,
    ...lines,
    ...noteLines(report),
    ...profileLines(report),
    ...skippedLines(report),
  ].join("\n");
}

function figureRow({ id, title, unit, summary, ratio }: Figure, others: readonly Report[]): Row {
  const theirs = others.map(({ figures }) => {
    const same = figures.find((figure) => figure.id === id);
    return same ? amount(same.summary.median, same.unit) : "–";
  });
  const isSingle = summary.runs === 1;
  return [
    title,
    amount(summary.median, unit),
    isSingle ? "" : amount(summary.p95, unit),
    isSingle ? "" : String(summary.runs),
    ratio ? ratio.median.toFixed(1) : "",
    ...theirs,
  ];
}

/** The machine and the run. */
export function describeReport({ startedAt, seconds, quick, machine }: Report): string[] {
  const { processor, cores, memoryMb, kernel, load, kubernetes, nodes } = machine;
  return [
    `machine    ${cores} × ${processor}, ${Math.round(memoryMb / 1024)} GB, Linux ${kernel}; load ${load.map((value) => value.toFixed(1)).join(" → ")}`,
    `cluster    Kubernetes ${kubernetes}; ${nodes.join("; ")}`,
    `run        ${startedAt}, ${Math.round(seconds)} s${quick ? ", quick: few runs, small numbers" : ""}`,
  ];
}

export const operatorName = ({ operator, image }: Report): string =>
  `${operator} (${image.slice(image.lastIndexOf("/") + 1)})`;

export function noteLines({ figures }: Report): string[] {
  const notes = figures.flatMap(({ title, note }) => (note === undefined ? [] : [`  ${title}: ${note}`]));
  return notes.length > 0 ? ["", ...notes] : [];
}

/** Each part with a bar for its share. */
function profileLines({ profiles }: Report): string[] {
  return profiles.flatMap(({ title, parts }) => {
    const whole = parts.reduce((sum, { ms }) => sum + ms, 0);
    const bar = (ms: number): string => "█".repeat(whole > 0 ? Math.round((ms / whole) * barLength) : 0);
    const rows = parts.map(({ name, ms }) => [`  ${name}`, amount(ms, "ms")]);
    return ["", title, ...columns(rows).map((line, index) => `${line}  ${bar(parts[index]?.ms ?? 0)}`.trimEnd())];
  });
}

const barLength = 40;

export function skippedLines({ skipped }: Report): string[] {
  return skipped.length > 0 ? ["", ...skipped.map(({ title, reason }) => `  not measured: ${title}: ${reason}`)] : [];
}
