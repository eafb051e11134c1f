/** Updates that may start. */
import type { UpdatePlan } from "../steps.ts";
import { hasFinalizer, type UpdateView } from "../view.ts";

/** Before the pod is recorded: an Update that may be running always has the finalizer. */
export function finalizerMissing(view: UpdateView): UpdatePlan | undefined {
  return hasFinalizer(view) ? undefined : { steps: [{ kind: "addFinalizer" }], outcome: { kind: "unchanged" } };
}

export function start({ pod }: UpdateView): UpdatePlan {
  return { steps: [{ kind: "confirmReady" }], outcome: { kind: "started", podUid: pod?.agent.uid ?? "" } };
}
