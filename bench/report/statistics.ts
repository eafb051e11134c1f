/** What several runs of the same thing come to. Pure. */

export interface Summary {
  readonly runs: number;
  readonly median: number;
  readonly p95: number;
  readonly least: number;
  readonly most: number;
}

/** Undefined where nothing was measured. */
export function summarise(values: readonly number[]): Summary | undefined {
  if (values.length === 0) return undefined;
  return {
    runs: values.length,
    median: quantile(values, 0.5),
    p95: quantile(values, 0.95),
    least: Math.min(...values),
    most: Math.max(...values),
  };
}

/** Between two neighbours it is interpolated, so that a few runs do not make the 95 % simply the worst of them. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place - Math.floor(place));
}

/** Each value by the yardstick of its own round: what slowed down both cancels out. */
export function ratios(values: readonly number[], yardsticks: readonly number[]): number[] {
  return values.flatMap((value, round) => {
    const yardstick = yardsticks[round];
    return yardstick === undefined || yardstick <= 0 ? [] : [value / yardstick];
  });
}
