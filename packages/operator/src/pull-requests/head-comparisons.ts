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

interface FollowedHeads extends WantedHeads {
  readonly filtersHash: string;
  /** By head: what it is compared with. */
  readonly bases: ReadonlyMap<string, string>;
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
    const isSame = followed?.remote.url === url && followed.filtersHash === contentHash(pathFilters);
    return isSame ? followed.verdicts : new Map();
  }

  follow(key: Key, wanted: WantedHeads): void {
    const { remote, from, heads, pathFilters } = wanted;
    const before = this.#followed.get(key);
    const former = before?.remote.url === remote.url ? before.bases : undefined;
    const known = this.latest(key, { url: remote.url, pathFilters });
    const followed: FollowedHeads = {
      ...wanted,
      filtersHash: contentHash(pathFilters),
      bases: new Map(heads.map((head) => [head, former?.get(head) ?? from])),
      verdicts: new Map([...known].filter(([head]) => heads.includes(head))),
    };
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

function openComparisons({ remote, bases, verdicts }: FollowedHeads): (readonly [string, Comparison])[] {
  return [...bases].filter(([head]) => !verdicts.has(head)).map(([to, from]) => [to, { ...remote, from, to }] as const);
}

/** Characters of paths, for each filter: matching more would stop the operator for longer than some 10 ms. */
const maxMatchedChars = 4 * 1024 * 1024;

type FinalResult = Exclude<ComparedCommits, { kind: "unreachable" }>;

/** In doubt, the pull request is previewed. */
function isAffecting(result: FinalResult, pathFilters: readonly string[]): boolean {
  if (result.kind === "unknown") return true;
  const chars = result.paths.reduce((sum, path) => sum + path.length, 0);
  return chars * pathFilters.length > maxMatchedChars || result.paths.some(globSelector(pathFilters));
}
