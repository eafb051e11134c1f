/** What the rules decide: the steps of a reconcile of pull request previews. */
import type { CancelledPreview, Stack } from "@pko/api";
import type { Plan } from "@pko/kube";

import type { Outcome } from "./outcome.ts";

export type Step =
  /** Creates and changes previews. */
  | { readonly kind: "applyPreviews"; readonly previews: readonly WantedPreview[] }
  /** Cancels what runs in them, and deletes them. */
  | { readonly kind: "deletePreviews"; readonly previews: readonly Stack[] }
  /** Sets the status of their commits. */
  | { readonly kind: "reportCancelled"; readonly previews: readonly CancelledReport[] };

export interface CancelledReport extends CancelledPreview {
  readonly description: string;
}

export interface WantedPreview {
  /** Of the pull request. */
  readonly number: number;
  readonly stack: Stack;
}

export type PullRequestsPlan = Plan<Step, Outcome>;
