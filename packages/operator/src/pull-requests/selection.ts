/** Which pull requests are previewed. Pure. */
import type { NormalPullRequests } from "@pko/api";
import type { PullRequest } from "@pko/forge";
import { globSelector } from "@pko/git";

export interface Selection {
  /** The newest first, within the limit. */
  readonly selected: readonly PullRequest[];
  /** How many more match, but exceed the limit. */
  readonly beyondLimit: number;
  /** How many would match if forks were allowed. */
  readonly fromForks: number;
  /** How many cannot be previewed, because the forge does not have their head. */
  readonly withoutCommit: number;
}

export const selectPullRequests = (open: readonly PullRequest[], wanted: NormalPullRequests): Selection =>
  selectMatching(matchingPullRequests(open, wanted), wanted);

/** Those into the branches, and with the labels, of the Stack. */
export function matchingPullRequests(
  open: readonly PullRequest[],
  { branches, labels }: Pick<NormalPullRequests, "branches" | "labels">,
): PullRequest[] {
  const isTarget = globSelector(branches);
  return open
    .filter(({ number }) => Number.isSafeInteger(number) && number > 0)
    .filter(({ base }) => isTarget(base.ref))
    .filter((each) => labels.length === 0 || each.labels.some((label) => labels.includes(label)));
}

/** Of those that match. */
export function selectMatching(
  matching: readonly PullRequest[],
  { limit, allowForks }: Pick<NormalPullRequests, "limit" | "allowForks">,
): Selection {
  const allowed = matching.filter(({ isFork }) => allowForks || !isFork);
  const possible = allowed.filter(({ head }) => isCommit(head.commit));
  const newestFirst = possible.toSorted((one, other) => other.number - one.number);
  return {
    selected: newestFirst.slice(0, limit),
    beyondLimit: Math.max(0, possible.length - limit),
    fromForks: matching.length - allowed.length,
    withoutCommit: allowed.length - possible.length,
  };
}

/** A preview is pinned to it, so a short hash of a forge would not do. */
const isCommit = (text: string): boolean => /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(text);
