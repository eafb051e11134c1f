/** The rule about Updates that the history limits no longer keep. */
import { excessUpdates } from "../history/retention.ts";
import { unchanged, type StackPlan } from "../steps.ts";
import type { StackView } from "../view.ts";

/** Each deletion requeues the Stack, so that the next pass deletes more. */
const maxDeletionsPerPass = 20;

export function historyExceeded(view: StackView): StackPlan | undefined {
  const excess = view.isHistoryTrimmed ? [] : excessUpdates(view);
  if (excess.length === 0) return undefined;
  return { steps: [{ kind: "deleteUpdates", updates: excess.slice(0, maxDeletionsPerPass) }], outcome: unchanged };
}
