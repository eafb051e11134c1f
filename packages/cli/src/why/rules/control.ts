/** Rules about what people control: suspension, protection, approvals, windows and the order of deletion. */
import { next, summaries } from "../messages.ts";
import { conditionWith, decide, messageIn, retryOf, type Rule } from "./rule.ts";

export const suspended: Rule = (facts) =>
  conditionWith(facts, "Suspended")
    ? decide("suspended", {
        summary: summaries.suspended(facts),
        message: messageIn(facts),
        next: [next.resume(facts)],
      })
    : undefined;

export const protectedStack: Rule = (facts) =>
  conditionWith(facts, "Protected")
    ? decide("protected", {
        summary: summaries.protected(facts),
        message: messageIn(facts),
        next: [next.unprotect(facts)],
      })
    : undefined;

export const approvalPolicyMissing: Rule = (facts) =>
  conditionWith(facts, "ApprovalPolicyMissing")
    ? decide("approvalPolicyMissing", {
        summary: summaries.approvalPolicyMissing(facts),
        message: messageIn(facts),
        next: [next.policy],
      })
    : undefined;

export const approvalRejected: Rule = (facts) =>
  conditionWith(facts, "ApprovalRejected")
    ? decide("approvalRejected", {
        summary: summaries.approvalRejected(facts, facts.stack?.status?.approval?.decidedBy ?? ""),
        message: messageIn(facts),
        next: ["Change the program or the spec.", next.reconcile(facts)],
      })
    : undefined;

export const awaitingApproval: Rule = (facts) =>
  conditionWith(facts, "AwaitingApproval")
    ? decide("awaitingApproval", {
        summary: summaries.awaitingApproval(facts),
        message: facts.stack?.status?.approval?.summary ?? messageIn(facts),
        next: [next.approve(facts)],
      })
    : undefined;

export const outsideUpdateWindow: Rule = (facts) =>
  conditionWith(facts, "OutsideUpdateWindow")
    ? decide("outsideUpdateWindow", {
        summary: summaries.outsideUpdateWindow(facts),
        message: messageIn(facts),
        next: retryOf(facts).length > 0 ? retryOf(facts).map(opening) : [next.nothing],
      })
    : undefined;

export const waitingForSlot: Rule = (facts) =>
  conditionWith(facts, "WaitingForSlot")
    ? decide("waitingForSlot", {
        summary: summaries.waitingForSlot(facts),
        message: messageIn(facts),
        next: [next.nothing, next.slots],
      })
    : undefined;

const opening = (text: string): string => text.replace("Otherwise it is retried at", "The next window opens at");

export const waitingForDependents: Rule = (facts) =>
  conditionWith(facts, "WaitingForDependents")
    ? decide("waitingForDependents", {
        summary: summaries.waitingForDependents(facts),
        message: messageIn(facts),
        next: ["Check the Stacks that the message names."],
      })
    : undefined;
