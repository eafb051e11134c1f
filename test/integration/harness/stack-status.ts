/** Statuses of Stacks, as packages/operator/src/stack/status.ts writes them. */
import type { Condition, StackReason, StackStatus } from "@pko/api";

type ConditionPart = Pick<Condition, "status" | "reason" | "message">;

/** `since`: the time of the last transition of all conditions. */
export function stackStatuses(since: () => string) {
  const condition = (type: string, part: ConditionPart): Condition => ({
    type,
    ...part,
    lastTransitionTime: since(),
    observedGeneration: 1,
  });
  return {
    condition,
    stalled: (reason: StackReason<"Stalled">, message: string, more: StackStatus = {}): StackStatus => {
      const conditions = [
        condition("Ready", { status: "False", reason: "NotReadyStalled", message }),
        condition("Stalled", { status: "True", reason, message }),
      ];
      return { observedGeneration: 1, conditions, ...more };
    },
    reconciling: (reason: StackReason<"Reconciling">, message: string, more: StackStatus = {}): StackStatus => {
      const conditions = [
        condition("Ready", { status: "False", reason: "NotReadyInProgress", message }),
        condition("Reconciling", { status: "True", reason, message }),
      ];
      return { observedGeneration: 1, conditions, ...more };
    },
    ready: (message = "The last update succeeded: 2 created.", more: StackStatus = {}): StackStatus => {
      const { conditions = [], ...rest } = more;
      const own = condition("Ready", { status: "True", reason: "ProcessingCompleted", message });
      return { observedGeneration: 1, conditions: [own, ...conditions], ...rest };
    },
  };
}
