/** The state of pull request previews, as their plan sees it. Closed: status.ts has a condition for each. */
import type { CancelledPreview, StackReason } from "@pko/api";
import type { PullRequest } from "@pko/forge";

type Reason = StackReason<"PullRequestsPreviewed">;

export type Outcome =
  /** The status stays as it is. */
  | { readonly kind: "unchanged" }
  /** No pull requests are previewed. */
  | { readonly kind: "off" }
  /** Previews stay as they are. */
  | { readonly kind: "waiting"; readonly reason: Reason; readonly message: string }
  | { readonly kind: "failing"; readonly reason: Reason; readonly message: string }
  /** These have a preview, or one that is blocked. */
  | {
      readonly kind: "previewing";
      readonly selected: readonly PullRequest[];
      /** The numbers of others that keep their preview, because it is not known whether they are open, or selected. */
      readonly kept: readonly number[];
      readonly cancelled: readonly CancelledPreview[];
      readonly message: string;
      /** Why some previews could not be written. */
      readonly blocked?: string;
    };
