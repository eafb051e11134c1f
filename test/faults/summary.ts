/** The result of a campaign. Pure. */
import type { Tally } from "./campaign.ts";
import type { Fault } from "./judgement.ts";

const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0);

/** Crash points that were hit. */
const hitsIn = (tallies: readonly Tally[]): number => sum(tallies.flatMap(({ hits }) => Object.values(hits)));

/** For example `12 points: 0 lost, 0 doubled, 0 stuck, 0 undestroyed, 0 unapproved, 0 other, 0 responses with 403`. */
export function summarize(tallies: readonly Tally[]): string {
  const failures = tallies.flatMap(({ failures }) => failures);
  const count = (fault: Fault): string => `${failures.filter(({ kind }) => kind === fault).length} ${fault}`;
  const counts = (["lost", "doubled", "stuck", "undestroyed", "unapproved", "other"] as const).map(count);
  const forbidden = sum(tallies.map(({ forbidden }) => forbidden));
  return `${hitsIn(tallies)} points: ${[...counts, `${forbidden} responses with 403`].join(", ")}`;
}

/** A campaign in which the operator never crashed has not tested anything. */
export function isPassed(tallies: readonly Tally[]): boolean {
  return hitsIn(tallies) > 0 && tallies.every(({ failures, forbidden }) => failures.length === 0 && forbidden === 0);
}
