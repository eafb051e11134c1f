/** Several runs with the same operator as one report. Pure. */
import { mergeFigures, type Figure, type Report } from "./figures.ts";

/** The figures have the values of all runs; curves and profiles are those of the last one. */
export function mergeReports(first: Report, ...others: readonly Report[]): Report {
  const all = [first, ...others];
  const last = all.at(-1) ?? first;
  const byId = new Map<string, Figure[]>();
  for (const figure of all.flatMap(({ figures }) => figures)) {
    byId.set(figure.id, [...(byId.get(figure.id) ?? []), figure]);
  }
  return {
    ...last,
    startedAt: first.startedAt,
    seconds: all.reduce((sum, { seconds }) => sum + seconds, 0),
    machine: { ...first.machine, load: all.flatMap(({ machine }) => machine.load) },
    figures: [...byId.values()].flatMap((figures) => mergeFigures(figures)),
    skipped: all.flatMap(({ skipped }) => skipped),
  };
}
