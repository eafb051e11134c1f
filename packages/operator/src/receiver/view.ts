/** Everything that the rules of a Receiver may depend on. */
import type { Receiver } from "@pko/api";

import type { PolledObject } from "../inputs/reference-poller.ts";
import type { Deliveries } from "../webhooks/active-receivers.ts";

export interface ReceiverView {
  readonly now: number;
  readonly receiver: Receiver;
  /** Whether the operator serves webhooks. */
  readonly isServed: boolean;
  readonly secret: SecretView;
  /** The Secret, as read. */
  readonly secretObject: PolledObject;
  /** What has arrived since this replica leads. */
  readonly deliveries: Deliveries;
}

export type SecretView =
  { readonly kind: "missing" | "keyMissing" | "forbidden" } | { readonly kind: "read"; readonly bytes: Buffer };
