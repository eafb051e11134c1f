/** Which heads of pull requests change something, as last compared. Nothing here waits for a repository. */
import type { NormalStack, Stack } from "@pko/api";
import type { PullRequest } from "@pko/forge";
import type { Client, Key } from "@pko/kube";

import { findSecret } from "../shared/objects/find-secret.ts";
import { readCredentials } from "../sources/git-credentials.ts";
import type { HeadComparisons, WantedHeads } from "./head-comparisons.ts";
import { selectPullRequests } from "./selection.ts";
import type { HeadsView } from "./view.ts";

export interface HeadsWorld {
  readonly client: Client;
  readonly comparisons: Pick<HeadComparisons, "latest">;
}

interface Subject {
  readonly key: Key;
  readonly stack: Stack;
  readonly spec: NormalStack;
  readonly open: readonly PullRequest[];
}

interface ObservedHeads {
  readonly heads: HeadsView;
  /** What is compared when the pass ends. `unchanged`: which heads there are is not known. */
  readonly wantedHeads: WantedHeads | "none" | "unchanged";
}

/** No pull request is left out. */
export const noHeads: ObservedHeads = { heads: { unaffected: new Set(), uncompared: new Set() }, wantedHeads: "none" };

/** Without a list of pull requests: what is known about their heads is needed when there is one again. */
export const unlistedHeads: ObservedHeads = { ...noHeads, wantedHeads: "unchanged" };

/** What is not known counts as a change: the preview runs. */
export async function observeHeads(
  { client, comparisons }: HeadsWorld,
  { key, stack, spec, open }: Subject,
  signal: AbortSignal,
): Promise<ObservedHeads> {
  const { source, namespace, pullRequests } = spec;
  const from = deployedCommit(stack);
  if (source.kind !== "git" || source.pathFilters.length === 0 || !pullRequests || from === undefined) return noHeads;
  const access = await readCredentials(source.auth, async (name) => {
    const secret = await findSecret(client, { namespace, name }, signal);
    return secret === "forbidden" ? undefined : secret?.data;
  });
  const { url } = source.repository;
  const { pathFilters } = source;
  // All that match, not only those within the limit: which of them change something decides who is within it.
  const { selected } = selectPullRequests(open, { ...pullRequests, limit: Infinity });
  const heads = selected.map(({ head }) => head.commit);
  const verdicts = comparisons.latest(key, { url, pathFilters });
  const unaffected = new Set(heads.filter((head) => verdicts.get(head) === false));
  if (access.kind === "missing") {
    return { heads: { unaffected, uncompared: new Set() }, wantedHeads: "unchanged" };
  }
  const { credentials, ca } = access;
  return {
    heads: { unaffected, uncompared: new Set(heads.filter((head) => !verdicts.has(head))) },
    wantedHeads: { remote: { url, credentials, ...(ca !== undefined && { ca }) }, from, heads, pathFilters },
  };
}

/** The selected files of a skipped commit are the same, and Stacks that have skipped it share the comparison. */
function deployedCommit({ status }: Stack): string | undefined {
  const { lastUpdate, skippedCommit } = status ?? {};
  const since = lastUpdate?.lastSuccessfulCommit;
  return skippedCommit !== undefined && skippedCommit.since === since ? skippedCommit.commit : since;
}
