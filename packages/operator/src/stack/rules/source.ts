/** Rules about a source that has no revision to run. A destroy may work without one. */
import * as messages from "../messages.ts";
import { processing, type Outcome } from "../outcome.ts";
import { unchanged, wait, type StackPlan } from "../steps.ts";
import { isDeleting, wasSuspended, type StackView } from "../view.ts";
import { recheckAt } from "./recheck.ts";

/** The cause may be a Secret: a credential, a host key, a CA. */
export function sourceUnavailable(view: StackView): StackPlan | undefined {
  const { source } = view;
  if (source.kind !== "unavailable" || isDeleting(view)) return undefined;
  const { message, problem: sourceProblem } = source;
  const outcome: Outcome = { kind: "stalled", reason: "SourceUnavailable", message, sourceProblem };
  return wait(outcome, recheckAt(view, "SourceUnavailable"));
}

/** After a restart no source has been read yet. That must not make a Stack unready. */
export function sourcePending(view: StackView): StackPlan | undefined {
  const { source, stack } = view;
  if (source.kind !== "pending" || isDeleting(view)) return undefined;
  const isObserved =
    stack.status?.observedGeneration === stack.metadata.generation && stack.status?.conditions !== undefined;
  // A Stack that has been resumed must not appear to be suspended.
  return wait(
    isObserved && !wasSuspended(view) ? unchanged : processing(messages.waitingForSource(source.what), source.what),
  );
}
