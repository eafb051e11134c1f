/** Updates that may start. */
import type { Step, UpdatePlan } from "../steps.ts";
import { hasFinalizer, type UpdateView } from "../view.ts";
import { approvalSteps } from "./approval.ts";

/** Before the pod is recorded: an Update that may be running always has the finalizer. */
export function finalizerMissing(view: UpdateView): UpdatePlan | undefined {
  return hasFinalizer(view) ? undefined : { steps: [{ kind: "addFinalizer" }], outcome: { kind: "unchanged" } };
}

export function start(view: UpdateView): UpdatePlan {
  const steps: readonly Step[] = [
    { kind: "claimSlot", starts: true },
    { kind: "confirmReady" },
    ...approvalSteps(view),
  ];
  return { steps, outcome: { kind: "started", podUid: view.pod?.agent.uid ?? "" } };
}
