/** For tests of something else: the admission policy for Approvals counts as in force. */
import type { PolicyProbe } from "@pko/operator";

export const policyInForce: PolicyProbe = {
  state: () => ({ kind: "inForce" }),
  follow: () => undefined,
  forget: () => undefined,
  stop: () => undefined,
};
