/** The form of a rule, and what several rules ask about a Stack. Pure. */
import type { Condition, StackReason } from "@pko/api";

import { conditionOf, decidingCondition } from "../../stacks/summary.ts";
import type { Cause, CauseCode, Finding } from "../cause.ts";
import { because } from "../cause.ts";
import type { StackFacts } from "../facts.ts";
import * as messages from "../messages.ts";

/** Undefined if the rule does not apply. */
export type Rule = (facts: StackFacts) => Finding | undefined;

export const deciding = ({ stack }: StackFacts): Condition | undefined => stack && decidingCondition(stack);

export const messageIn = (facts: StackFacts): string => deciding(facts)?.message ?? "";

/** Undefined if the Stack's condition has another reason. */
export function conditionWith(
  facts: StackFacts,
  ...reasons: readonly (StackReason<"Reconciling"> | StackReason<"Stalled">)[]
): Condition | undefined {
  const condition = deciding(facts);
  return condition && condition.type !== "Ready" && reasons.some((reason) => reason === condition.reason)
    ? condition
    : undefined;
}

interface Texts {
  readonly summary: string;
  readonly message?: string | undefined;
  readonly next: readonly string[];
}

export function cause(code: CauseCode, { summary, message, next }: Texts): Cause {
  return { code, summary, ...(message && { message }), next };
}

export const decide = (code: CauseCode, texts: Texts): Finding => because(cause(code, texts));

/** When the operator tries again by itself. */
export const retryOf = ({ stack, now }: StackFacts): string[] => messages.next.retry(stack?.status?.next?.time, now);

export const isReady = ({ stack }: StackFacts): boolean => conditionOf(stack, "Ready")?.status === "True";

export const isObserved = ({ stack }: StackFacts): boolean =>
  (stack?.status?.observedGeneration ?? 0) >= (stack?.metadata.generation ?? 0) &&
  (stack?.status?.conditions ?? []).length > 0;
