import { describe, expect, test } from "bun:test";

import { checkPlans } from "../testing/cases.ts";
import { ago, notReady, pod, ready, set, update, view, withoutAddress } from "../testing/views.ts";
import { planWorkspace } from "./index.ts";

const overdue = (seconds: number) => ({
  overdue: { namespace: "team", name: "web-workspace-0", node: "worker-2", since: ago(seconds) },
});
const terminating = { isDeleting: true, terminatingSince: ago(900) };

describe("a pod whose node may be lost", () => {
  checkPlans({
    "is reported with the fix if it does not terminate, and nothing else is done": {
      when: [notReady(), pod({ ...terminating, ...overdue(300) }), set(), update("waiting")],
      outcome: "nodeLost",
      contains: "kubectl delete pod web-workspace-0 -n team --force --grace-period=0",
    },
    "is reported if its kubelet is silent, although its last status is running": {
      when: [ready(), pod(overdue(300)), set()],
      outcome: "nodeLost",
      contains: "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
    },
    "is not checked again immediately when the time is over": {
      when: [notReady(1200), pod({ ...terminating, ...overdue(300) }), set(), update("waiting")],
      outcome: "nodeLost",
      requeueAfterMs: 300_000,
    },
    "is checked less often, the longer it is lost": {
      when: [notReady(1200), pod({ ...terminating, ...overdue(1200) }), set(), update("waiting")],
      outcome: "nodeLost",
      requeueAfterMs: 300_000,
    },
    "is requeued for when the time is over, before that": {
      when: [notReady(), pod({ ...terminating, terminatingSince: ago(30), ...overdue(290) }), set(), update("waiting")],
      outcome: "rolling",
      requeueAfterMs: 10_000,
    },
    "is left to the Update to report if one runs in it": {
      when: [ready(), pod(overdue(3600)), set(), update("onPod")],
      outcome: "unchanged",
    },
    "is not reported for an idle workspace: nothing waits for the pod": {
      when: [ready(), withoutAddress, pod({ ...terminating, ...overdue(3600) }), set({ replicas: 0 })],
      steps: ["deletePod"],
      outcome: "idle",
    },
  });
});

describe("a terminating pod", () => {
  checkPlans({
    "is waited for": { when: [ready(), set(), pod({ isDeleting: true })], outcome: "rolling" },
    "gets a shorter grace period after a minute if nothing runs in it": {
      when: [ready(), set(), pod({ isDeleting: true, terminatingSince: ago(60) })],
      steps: ["deletePod"],
      outcome: "rolling",
    },
    "keeps its grace period until then": {
      when: [ready(), set(), pod({ isDeleting: true, terminatingSince: ago(59) })],
      outcome: "rolling",
    },
    "keeps its grace period if an Update runs in it": {
      when: [ready(), set(), pod({ isDeleting: true, terminatingSince: ago(300) }), update("onPod")],
      outcome: "rolling",
    },
  });

  test("is deleted by its UID, with a grace period of five seconds", () => {
    const { steps } = planWorkspace(view(ready(), set(), pod({ isDeleting: true, terminatingSince: ago(60) })));
    expect(steps).toEqual([{ kind: "deletePod", uid: "p1", graceSeconds: 5 }]);
  });
});
