/** The results of a benchmark run: figures, curves, and what could not be measured. */
import { ratios, summarize, type Summary } from "./statistics.ts";

export type Unit = "ms" | "MB" | "KB" | "m" | "/h" | "/s" | "count";

export interface Figure {
  /** Stays the same from run to run, so that runs can be compared. */
  readonly id: string;
  readonly title: string;
  readonly unit: Unit;
  readonly values: readonly number[];
  readonly summary: Summary;
  /** To the bare CLI's `up` in the same round. */
  readonly ratios?: readonly number[];
  readonly ratio?: Summary;
  /** A short explanation. */
  readonly note?: string;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** A value as a function of another, shown in a plot. */
export interface Curve {
  readonly id: string;
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly points: readonly Point[];
}

export interface Skipped {
  readonly title: string;
  readonly reason: string;
}

/** How the time of an operation is divided. */
export interface Profile {
  readonly title: string;
  readonly parts: readonly { readonly name: string; readonly ms: number }[];
}

export interface Findings {
  readonly figures: readonly Figure[];
  readonly curves?: readonly Curve[];
  readonly profiles?: readonly Profile[];
  readonly skipped?: readonly Skipped[];
}

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly memoryMb: number;
  readonly kernel: string;
  /** The one-minute load average at the start and end of the benchmark. */
  readonly load: readonly number[];
  readonly kubernetes: string;
  readonly nodes: readonly string[];
}

export interface Report {
  readonly operator: string;
  readonly image: string;
  readonly startedAt: string;
  readonly seconds: number;
  readonly quick: boolean;
  readonly machine: Machine;
  readonly figures: readonly Figure[];
  readonly curves: readonly Curve[];
  readonly profiles: readonly Profile[];
  readonly skipped: readonly Skipped[];
}

type Naming = Pick<Figure, "id" | "title" | "unit" | "note">;

/** A list with one figure, or an empty list if nothing was measured. */
export function figure(naming: Naming, values: readonly number[], yardsticks: readonly number[] = []): Figure[] {
  return summarized(naming, values, ratios(values, yardsticks));
}

/** The same figure of several runs. */
export function mergeFigures(figures: readonly Figure[]): Figure[] {
  const [first] = figures;
  if (!first) return [];
  const { id, title, unit, note } = first;
  const allRatios = figures.flatMap((each) => each.ratios ?? []);
  return summarized(
    { id, title, unit, ...(note !== undefined && { note }) },
    figures.flatMap(({ values }) => values),
    allRatios,
  );
}

function summarized(naming: Naming, values: readonly number[], ownRatios: readonly number[]): Figure[] {
  const summary = summarize(values);
  if (!summary) return [];
  const ratio = summarize(ownRatios);
  return [
    {
      ...naming,
      values: values.map(rounded),
      summary: roundedAll(summary),
      ...(ratio && { ratios: ownRatios.map(rounded), ratio: roundedAll(ratio) }),
    },
  ];
}

/** Three decimals are more than the precision of any measurement. */
const rounded = (value: number): number => Math.round(value * 1000) / 1000;

const roundedAll = (summary: Summary): Summary => ({
  runs: summary.runs,
  median: rounded(summary.median),
  p95: rounded(summary.p95),
  least: rounded(summary.least),
  most: rounded(summary.most),
});
