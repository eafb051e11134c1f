/** The state of a Receiver, as its plan sees it. Closed: status.ts has a condition for each. */
import type { ReceiverStall } from "@pko/api";

export type Outcome =
  | { readonly kind: "receiving"; readonly message: string; readonly secret: Buffer }
  | { readonly kind: "stalled"; readonly reason: ReceiverStall; readonly message: string };
