/** Everything that the rules of pull request previews may depend on. */
import type { CancelledPreview, NormalStack, Normalized, Stack } from "@pko/api";
import type { Occupied } from "@pko/kube";

import type { PolledObject } from "../inputs/reference-poller.ts";
import type { Rejection } from "../shared/objects/rejections.ts";
import type { WantedHeads } from "./head-comparisons.ts";
import type { ForgeFollow, ForgePollResult, ForgeProblem, ListedPullRequests } from "./poller.ts";

export interface PullRequestsView extends LearnedFacts {
  readonly now: number;
  /** The Stack whose pull requests are previewed. */
  readonly stack: Stack;
  readonly spec: Normalized<NormalStack>;
  /** Whether all Stacks of the operator are suspended. */
  readonly operatorSuspended: boolean;
  readonly forge: ForgeView;
  /** What is followed when the pass ends, and what was read of it; absent if nothing is. For no rule to use. */
  readonly followed?: { readonly wanted: ForgeFollow; readonly seen: ForgePollResult };
  /** What the pull requests change. */
  readonly heads: HeadsView;
  /** Which heads are compared when the pass ends. For no rule to use. */
  readonly wantedHeads: WantedHeads | "none" | "unchanged";
  /** The Secrets with the credentials, as read. */
  readonly secrets: readonly PolledObject[];
  /** The Stacks that preview pull requests of this one. It controls them, by UID. */
  readonly previews: readonly Stack[];
  /** The Updates of previews, also of deleted ones. */
  readonly runs: readonly PreviewRun[];
}

/** An Update of a preview. */
export interface PreviewRun extends CancelledPreview {
  /** The forge has the result. Every preview is reported, but the report may not have been recorded as due yet. */
  readonly isReported: boolean;
}

export type ForgeView =
  /** Not read: the Stack is suspended, deleted or invalid, or previews no pull requests. */
  | { readonly kind: "none" }
  | { readonly kind: "pending" }
  | ListedPullRequests
  | { readonly kind: "failed"; readonly problem: ForgeProblem; readonly message: string };

/** Commits. Both sets are empty without path filters. */
export interface HeadsView {
  /** These change nothing that the path filters select. */
  readonly unaffected: ReadonlySet<string>;
  /** Whether these change something is not known yet. */
  readonly uncompared: ReadonlySet<string>;
}

/** Unknown when a pass starts. */
interface LearnedFacts {
  /** By the number of the pull request: why its preview could not be written. The others were. */
  readonly blocked?: ReadonlyMap<number, Blockage>;
  /** Of the cancelled previews, those that the forge shows, or rejects for good. Undefined before it was called. */
  readonly answered?: readonly CancelledPreview[];
}

export type Blockage = Occupied | { readonly kind: "rejected"; readonly rejection: Rejection };
