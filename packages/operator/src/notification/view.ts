/** Everything that the rules of a Notification may depend on. */
import type { Notification } from "@pko/api";

import type { PolledObject } from "../inputs/reference-poller.ts";
import type { DeliveryState } from "./delivery/deliveries.ts";
import type { Target } from "./delivery/send.ts";
import type { Inbox } from "./occurrences/inboxes.ts";

export interface NotificationView {
  readonly now: number;
  readonly notification: Notification;
  readonly target: TargetView;
  /** The Secret, as it was read. */
  readonly secretObject?: PolledObject;
  readonly inbox: Inbox;
  readonly delivery: DeliveryState;
  /** After failures, until a delivery succeeds or the target changes. */
  readonly retry?: Retry;
}

export type TargetView =
  | {
      readonly kind: "secretMissing" | "secretForbidden" | "urlMissing" | "urlInvalid" | "tokenInvalid" | "caInvalid";
    }
  | { readonly kind: "usable"; readonly target: Target };

export interface Retry {
  readonly failures: number;
  readonly at: number;
  readonly cause: string;
}

/** What passes remember: the retry, by the monotonic clock. */
export interface Memory extends Retry {
  /** What the failed target was read from. */
  readonly basis: string;
}

export const basisOf = ({
  notification: { metadata },
  secretObject,
}: Pick<NotificationView, "notification" | "secretObject">): string =>
  `${metadata.uid ?? ""} ${metadata.generation ?? 0} ${secretObject?.version ?? ""}`;
