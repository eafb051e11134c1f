import { progresses, table } from "../testing/plans.ts";
import { at, podIs, withFinalizer, workspaceReady } from "../testing/views.ts";

const confirmed = { steps: [{ kind: "claimSlot", starts: true }, { kind: "confirmReady" }] };

table("an Update that may start", [
  ["gets its finalizer first", [workspaceReady], { steps: [{ kind: "addFinalizer" }], isWritten: false }],
  [
    "then records its pod, once the API server confirms that it is ready",
    [workspaceReady, withFinalizer],
    { ...progresses("Progressing"), ...confirmed, status: { podUid: "pod-a", startTime: at(0) } },
  ],
  [
    "records the pod that exists",
    [workspaceReady, podIs("pod-b"), withFinalizer],
    { ...confirmed, status: { podUid: "pod-b" } },
  ],
]);
