/** How often a store is compared with the API server, and how long everything may take. */

export interface FeedTiming {
  /** The requested duration of a watch is between these. */
  readonly watchMinMs: number;
  readonly watchMaxMs: number;
  /** How much longer a watch may take to end. */
  readonly graceMs: number;
  /** The time between comparisons is between these, while the kind changes. */
  readonly compareMinMs: number;
  readonly compareMaxMs: number;
  /** The same for a kind that has not changed for `quietMs`. */
  readonly quietCompareMinMs: number;
  readonly quietCompareMaxMs: number;
  readonly quietMs: number;
  /** How late an event may be. */
  readonly settleMs: number;
  /** How soon a watch must start, and a page of a list must arrive. */
  readonly answerMs: number;
  /** The part of its time that a feed may spend on comparisons: they become less frequent when one takes half a second. */
  readonly comparingShare: number;
  /** With more objects, the store is compared in pages of this size, and most comparisons read only what has changed. */
  readonly largeSize: number;
  /** How often everything is compared. */
  readonly compareAllMs: number;
  readonly restartMinMs: number;
  readonly restartMaxMs: number;
}

export const productionTiming: FeedTiming = {
  watchMinMs: 25 * 60_000,
  watchMaxMs: 30 * 60_000,
  compareMinMs: 20_000,
  compareMaxMs: 30_000,
  quietCompareMinMs: 54_000,
  quietCompareMaxMs: 56_000,
  quietMs: 5 * 60_000,
  settleMs: 1000,
  graceMs: 5000,
  answerMs: 10_000,
  comparingShare: 0.02,
  // A single page is read from the cache of the API server, several ones may be read from etcd.
  largeSize: 5000,
  compareAllMs: 2 * 60 * 60_000,
  restartMinMs: 200,
  restartMaxMs: 10_000,
};

/** However long comparisons take, they do not become less frequent than this. */
const maxRestMs = 5 * 60_000;

/** The shortest time until the next comparison, after one that took this long. */
export const restMs = (comparisonMs: number, { comparingShare }: FeedTiming): number =>
  Math.min(maxRestMs, comparisonMs / comparingShare);

/** A healthy feed receives something from the server at least this often, if a comparison takes this long. */
export function longestSilenceMs(comparisonMs: number, timing: FeedTiming): number {
  const pauseMs = Math.max(timing.quietCompareMaxMs, restMs(comparisonMs, timing));
  return pauseMs + comparisonMs + timing.graceMs + timing.restartMinMs + 1000;
}
