/**
 * Whether the heads of pull requests change something, for Stacks with path filters. A head is compared once, with what the Stack had
 * deployed when the pull request was pushed: a later deployment does not start previews of pull requests that have nothing to do with it.
 */
import type { Clock, Key, Logger } from "@pko/kube";
import { globSelector } from "@pko/git";

import { contentHash } from "../shared/digest.ts";
import type { CommitComparer } from "../sources/git-lister.ts";
import type { ComparedCommits } from "../sources/git-http.ts";
import type { GitRemote } from "../sources/git-remote.ts";
import { pathComparisons, type Comparison, type PathComparisons } from "../sources/path-comparisons.ts";

export interface WantedHeads {
  readonly remote: GitRemote;
  /** What new heads are compared with. */
  readonly from: string;
  readonly heads: readonly string[];
  readonly pathFilters: readonly string[];
}

interface FilteredRepository {
  readonly url: string;
  readonly pathFilters: readonly string[];
}

export interface HeadComparisons {
  /** By head, whether it changes a file that the filters select. What cannot be compared counts as a change; what is not known yet is missing. */
  latest(key: Key, repository: FilteredRepository): ReadonlyMap<string, boolean>;
  /** The Stack needs these heads from now on, and no others. It is woken when something is known about one. */
  follow(key: Key, wanted: WantedHeads): void;
  forget(key: Key): void;
  /** Ends all comparisons and forgets everything. */
  stop(): void;
}

interface HeadComparisonOptions {
  readonly comparer: CommitComparer;
  readonly wake: (key: Key) => void;
  readonly clock?: Clock;
  readonly log?: Logger;
}

export function headComparisons(options: HeadComparisonOptions): HeadComparisons {
  return new Heads(options);
}

interface FollowedHeads {
  readonly url: string;
  readonly remoteHash: string;
  readonly pathFilters: readonly string[];
  readonly filtersHash: string;
  /** By head. */
  readonly comparisons: ReadonlyMap<string, Comparison>;
  /** By head: whether it changes a selected file. The paths, which can be megabytes for each head, are not kept. */
  readonly verdicts: Map<string, boolean>;
}

class Heads implements HeadComparisons {
  readonly #comparisons: PathComparisons;
  readonly #followed = new Map<Key, FollowedHeads>();

  constructor({ wake, ...options }: HeadComparisonOptions) {
    const settle = (key: Key): void => {
      this.#settle(key);
      wake(key);
    };
    this.#comparisons = pathComparisons({ ...options, wake: settle });
  }

  latest(key: Key, { url, pathFilters }: FilteredRepository): ReadonlyMap<string, boolean> {
    const followed = this.#followed.get(key);
    const isSame = followed?.url === url && followed.filtersHash === contentHash(pathFilters);
    return isSame ? followed.verdicts : new Map();
  }

  follow(key: Key, wanted: WantedHeads): void {
    const { remote, pathFilters } = wanted;
    const { url } = remote;
    const remoteHash = contentHash(remote);
    const comparisons = comparisonsFor(wanted, remoteHash, this.#followed.get(key));
    const known = this.latest(key, { url, pathFilters });
    const verdicts = new Map([...known].filter(([head]) => comparisons.has(head)));
    const filtersHash = contentHash(pathFilters);
    const followed = { url, remoteHash, pathFilters, filtersHash, comparisons, verdicts };
    this.#followed.set(key, followed);
    this.#compare(key, followed);
  }

  forget(key: Key): void {
    this.#followed.delete(key);
    this.#comparisons.follow(key, []);
  }

  stop(): void {
    this.#comparisons.stop();
    this.#followed.clear();
  }

  /** Compares what is not known yet. */
  #compare(key: Key, followed: FollowedHeads): void {
    this.#comparisons.follow(
      key,
      openComparisons(followed).map(([, comparison]) => comparison),
    );
  }

  /** Called as soon as a comparison ends, so that its paths are not kept until the Stack is reconciled. */
  #settle(key: Key): void {
    const followed = this.#followed.get(key);
    if (!followed) return;
    for (const [head, comparison] of openComparisons(followed)) {
      const result = this.#comparisons.latest(comparison);
      // A server that cannot be reached is tried again.
      if (result && result.kind !== "unreachable")
        followed.verdicts.set(head, isAffecting(result, followed.pathFilters));
    }
    this.#compare(key, followed);
  }
}

/** Those of earlier passes, where they are the same: there may be hundreds, and each has a hash, which takes time. */
function comparisonsFor(
  { remote, from, heads }: WantedHeads,
  remoteHash: string,
  former: FollowedHeads | undefined,
): ReadonlyMap<string, Comparison> {
  const known = former?.url === remote.url ? former : undefined;
  const comparisonOf = (to: string): Comparison => {
    const before = known?.comparisons.get(to);
    return before && known?.remoteHash === remoteHash ? before : { ...remote, from: before?.from ?? from, to };
  };
  return new Map(heads.map((head) => [head, comparisonOf(head)]));
}

function openComparisons({ comparisons, verdicts }: FollowedHeads): (readonly [string, Comparison])[] {
  return [...comparisons].filter(([head]) => !verdicts.has(head));
}

type FinalResult = Exclude<ComparedCommits, { kind: "unreachable" }>;

/** In doubt, the pull request is previewed. */
const isAffecting = (result: FinalResult, pathFilters: readonly string[]): boolean =>
  result.kind === "unknown" || result.paths.some(globSelector(pathFilters));
