/** Registers a Stack with the poller of its repository, or with the watch of its Flux object, and with no other. */
import type { Key } from "@pko/kube";

import type { FluxFollow, FluxSources } from "./flux-sources.ts";
import type { GitFollow, GitPoller, GitPollResult } from "./git-poller.ts";
import type { Comparison, PathComparisons } from "./path-comparisons.ts";
import type { SourceView } from "./source-view.ts";

/** What a Stack has read of a source that can change. */
export type FollowedSource =
  | {
      readonly kind: "git";
      readonly wanted: GitFollow;
      readonly seen: GitPollResult;
      /** For its path filters, and for a plan that is not applied yet. */
      readonly comparisons: readonly Comparison[];
    }
  | { readonly kind: "flux"; readonly wanted: FluxFollow; readonly seen: SourceView };

export interface SourcePollers {
  readonly git: GitPoller;
  readonly flux: FluxSources;
  readonly comparisons: PathComparisons;
}

export function followSource(pollers: SourcePollers, key: Key, followed: FollowedSource | undefined): void {
  const { git, flux, comparisons } = pollers;
  if (followed?.kind === "git") git.follow(key, followed.wanted, followed.seen);
  else git.forget(key);
  comparisons.follow(key, followed?.kind === "git" ? followed.comparisons : []);
  if (followed?.kind === "flux") flux.follow(key, followed.wanted, followed.seen);
  else flux.forget(key);
}
