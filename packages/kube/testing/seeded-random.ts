/** Reproducible random numbers (mulberry32) for tests with many cases: a failure names its seed. */
export interface SeededRandom {
  /** 0 ≤ x < 1 */
  readonly next: () => number;
  /** 0 ≤ n < limit */
  readonly below: (limit: number) => number;
  readonly pick: <T>(items: readonly [T, ...T[]]) => T;
}

export function seededRandom(seed: number): SeededRandom {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return { next, below, pick: (items) => items[below(items.length)] ?? items[0] };
}
