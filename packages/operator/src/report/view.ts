/** Everything that the rules of a report may depend on. */
import type { ReportSettings, Stack, Update } from "@pko/api";
import type { ForgeCredentials, ForgeErrorKind, ForgeTarget } from "@pko/forge";
import type { RecordContent } from "@pko/records";

import type { ForgeState } from "../forge/forge-limits.ts";
import type { PolledObject } from "../inputs/reference-poller.ts";

export interface ReportView {
  readonly now: number;
  readonly update: Update;
  /** Undefined if nothing about the Update is reported. */
  readonly subject?: Subject;
  readonly memory?: ReportMemory;
  /** What this process has delivered, if the status does not show it yet: another controller may have written it at the same time. */
  readonly unrecorded?: Delivered;
  /** Facts of steps. */
  readonly access?: Access;
  readonly details?: Details;
  readonly answer?: Answer;
}

/** What an Update is about, at a forge. */
export interface Subject {
  readonly stack: Stack;
  readonly settings: ReportSettings;
  readonly target: ForgeTarget;
  readonly commit: string;
  /** The number of the pull request that the Stack previews. */
  readonly pullRequest?: number;
  /** It has no result, and another Update has one for the commit, which stays. */
  readonly isVoid: boolean;
  /** A later Update reports about the same commit. */
  readonly isSuperseded: boolean;
  /** A later preview of the Stack writes the comment. */
  readonly isCommentOutdated: boolean;
  /** The status of the Stack names the Update. */
  readonly isNamed: boolean;
  /** The Stack or the whole operator. */
  readonly isSuspended: boolean;
  /** The Stack is a preview that is deleted, and nobody else reports that its run has no result. */
  readonly isAbandoned: boolean;
  /** Undefined if the Update has made no plan with changes. */
  readonly plan?: PlanFate;
  /** The ID of the comment, as this or an earlier Update of the Stack has recorded it. */
  readonly commentID?: string;
  /** The end of the rest is a wall-clock time. */
  readonly forge: ForgeState;
}

/** What became of the plan that an Update has made. */
export type PlanFate =
  /** It waits for an approval, or for the end of the Update that applies it. */
  | { readonly kind: "open" | "rejected" | "superseded" }
  /** `by` has ended. It may deploy another commit, which the plan also covers. */
  | { readonly kind: "applied"; readonly by: Update };

export type Access =
  | { readonly kind: "found"; readonly secret: PolledObject; readonly credentials: ForgeCredentials }
  | { readonly kind: "missing" | "forbidden"; readonly secret: PolledObject }
  | { readonly kind: "invalid" | "refused" | "unavailable"; readonly secret: PolledObject; readonly message: string };

/** What a comment shows, besides the status of the Update. */
export interface Details {
  /** Undefined if the run has no record. */
  readonly record?: RecordContent;
  readonly outputs: readonly Output[];
}

export interface Output {
  readonly name: string;
  /** As JSON; undefined for a secret. */
  readonly json?: string;
}

export interface Delivered {
  readonly digest: string;
  readonly commentID?: string;
}

export type Answer =
  | ({ readonly kind: "delivered" } & Delivered)
  | {
      readonly kind: "failed";
      readonly error: ForgeErrorKind;
      readonly message: string;
      readonly retryAfterMs?: number;
    };

/** What a pass remembers about attempts that failed. */
export interface ReportMemory {
  readonly failures: number;
  /** On the monotonic clock. A view has it as a wall-clock time. */
  readonly retryAt: number;
}
