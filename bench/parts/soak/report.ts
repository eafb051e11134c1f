/** The report of a soak test in Markdown. Pure. */
import type { Finding } from "./gates.ts";
import type { Counts } from "./loads.ts";

export interface SoakReport {
  readonly minutes: number;
  /** Of these, how many are not measured. */
  readonly warmUpMinutes: number;
  readonly machine: string;
  readonly counts: Counts;
  readonly requests: number;
  readonly injectedFaults: number;
  readonly watches: number;
  readonly findings: readonly Finding[];
  /** What is open at rest, before and after the load. */
  readonly rest: readonly RestFinding[];
  /** Other failures: something was not deployed, requests were forbidden, errors were logged. */
  readonly failures: readonly string[];
}

export interface RestFinding {
  readonly title: string;
  readonly before: number;
  readonly after: number;
  readonly isPassed: boolean;
}

const restTitles = { files: "open files", sockets: "sockets", threads: "threads" } as const;
/** Connections that are kept for reuse, and threads of the runtime's pool. */
const restSlack = 6;

/** `after` must have about as much open as `before`. */
export function compareRest(
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
): RestFinding[] {
  return Object.entries(restTitles).map(([series, title]) => {
    const [first, last] = [before[series] ?? 0, after[series] ?? Infinity];
    return { title, before: first, after: last, isPassed: last <= first + restSlack };
  });
}

export const isPassed = ({ findings, rest, failures }: SoakReport): boolean =>
  failures.length === 0 && [...findings, ...rest].every((finding) => finding.isPassed);

export function markdown(report: SoakReport): string {
  const { minutes, warmUpMinutes, machine, counts, findings, rest, failures } = report;
  const verdict = isPassed(report) ? "passed" : "**failed**";
  return [
    `${minutes} minutes on ${machine}, measured after a warm-up of ${Number(warmUpMinutes.toFixed(1))}: ${verdict}.`,
    "",
    table(
      ["load", "count"],
      [
        ["changes of a Stack that were deployed", counts.changes],
        ["commits that were deployed", counts.commits],
        ["Stacks that were created, deployed, destroyed and deleted", counts.lifecycles],
        ["restarts of an agent in the middle of its work", counts.agentRestarts],
        ["times that all connections to the API server were aborted", counts.connectionCuts],
        ["watches that the operator opened", report.watches],
        ["requests of the operator", report.requests],
        ["requests and streams that failed on purpose", report.injectedFaults],
      ],
    ),
    "",
    table(["measured under load", "median", "growth", "limit", ""], findings.map(findingRow)),
    "",
    table(
      ["open at rest", "before", "after", ""],
      rest.map(({ title, before, after, isPassed: isFine }) => [`operator, ${title}`, before, after, mark(isFine)]),
    ),
    ...(failures.length > 0 ? ["", ...failures.map((failure) => `- ${failure}`)] : []),
    "",
  ].join("\n");
}

function findingRow({ gate, median, growth, limit, isPassed: isFine }: Finding): (string | number)[] {
  const unit = gate.unit === "" ? "" : ` ${gate.unit}`;
  const amount = (value: number): string => `${value.toFixed(1)}${unit}`;
  return [gate.title, amount(median), amount(growth), amount(limit), mark(isFine)];
}

const mark = (isFine: boolean): string => (isFine ? "" : "**too much**");

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]): string => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, column) => (column === 0 ? "---" : "---:"));
  return [line(head), line(rule), ...rows.map(line)].join("\n");
}
