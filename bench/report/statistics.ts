/** Statistics of several runs. Pure. */

export interface Summary {
  readonly runs: number;
  readonly median: number;
  readonly p95: number;
  readonly least: number;
  readonly most: number;
}

/** Undefined if nothing was measured. */
export function summarize(values: readonly number[]): Summary | undefined {
  if (values.length === 0) return undefined;
  return {
    runs: values.length,
    median: quantile(values, 0.5),
    p95: quantile(values, 0.95),
    least: Math.min(...values),
    most: Math.max(...values),
  };
}

/** Interpolated, so that with few runs the 95th percentile is not simply the worst run. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place - Math.floor(place));
}

/** Each value divided by the yardstick of its round, which cancels out what slowed down both. */
export function ratios(values: readonly number[], yardsticks: readonly number[]): number[] {
  return values.flatMap((value, round) => {
    const yardstick = yardsticks[round];
    return yardstick === undefined || yardstick <= 0 ? [] : [value / yardstick];
  });
}
