import { describe, expect, test } from "bun:test";
import type { ApiObject } from "@pko/kube";
import type { Pod, PodCondition } from "kubernetes-types/core/v1";

import { lostNodeAt, lostNodeMessage, overduePod } from "./lost-node.ts";

const noon = Date.UTC(2030, 0, 1, 12);
const at = (offsetSeconds: number): string => new Date(noon + offsetSeconds * 1000).toISOString();

const condition = (type: string, status: string, part: Partial<PodCondition> = {}): PodCondition => ({
  type,
  status,
  lastTransitionTime: at(-60),
  ...part,
});

function pod(
  conditions: readonly PodCondition[],
  metadata: object = {},
  nodeName: string | null = "worker-2",
): ApiObject<Pod> {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace: "team", name: "web-workspace-0", ...metadata },
    spec: { containers: [], ...(nodeName !== null && { nodeName }) },
    status: { phase: "Running", conditions: [...conditions] },
  };
}

const up = [condition("Ready", "True"), condition("ContainersReady", "True")];
/** The conditions that the node lifecycle controller sets. */
const nodeNotReady = [condition("Ready", "False"), condition("ContainersReady", "True")];

describe("a pod is overdue", () => {
  const cases: Readonly<Record<string, readonly [pod: ApiObject<Pod>, sinceSeconds: number | undefined]>> = {
    "not while it is ready": [pod(up), undefined],
    "from the end of its grace period, once it is being deleted": [pod(up, { deletionTimestamp: at(-30) }), -30],
    "in the future, while its grace period lasts": [pod(up, { deletionTimestamp: at(600) }), 600],
    "since its node does not respond": [pod(nodeNotReady), -60],
    "since the state of its node is unknown": [
      pod([condition("Ready", "Unknown"), condition("ContainersReady", "True")]),
      -60,
    ],
    "since the earlier of both": [pod(nodeNotReady, { deletionTimestamp: at(600) }), -60],
    "not when the kubelet reports that containers are not ready": [
      pod([
        condition("Ready", "False", { reason: "ContainersNotReady" }),
        condition("ContainersReady", "False", { reason: "ContainersNotReady" }),
      ]),
      undefined,
    ],
    "not when a readiness gate is closed": [
      pod([condition("Ready", "False", { reason: "ReadinessGatesNotReady" }), condition("ContainersReady", "True")]),
      undefined,
    ],
    "not before it is scheduled to a node": [pod(nodeNotReady, {}, null), undefined],
    "not while it has no conditions": [pod([]), undefined],
  };
  for (const [name, [object, sinceSeconds]] of Object.entries(cases)) {
    test(name, () => {
      expect(overduePod(object)?.since).toBe(sinceSeconds === undefined ? undefined : noon + sinceSeconds * 1000);
    });
  }
});

test("its node counts as lost when it has been overdue for the given time", () => {
  expect(lostNodeAt(overduePod(pod(nodeNotReady)), 300_000)).toBe(noon + 240_000);
  expect(lostNodeAt(undefined, 300_000)).toBe(Infinity);
});

test("the message contains the cause, the consequence and the fix, and fits into a condition", () => {
  const overdue = overduePod(pod(nodeNotReady));
  if (!overdue) throw new Error("it is overdue");
  const message = lostNodeMessage(overdue, "it is unknown whether the operation still runs there");
  expect(message).toContain("Pod web-workspace-0 on node worker-2 has not responded since 2030-01-01T11:59:00Z.");
  expect(message).toContain("kubectl taint nodes worker-2 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute");
  expect(message).toContain("kubectl delete pod web-workspace-0 -n team --force --grace-period=0");
  expect(message).toContain("while the node is alive can run two updates at once");
  const long = { ...overdue, namespace: "n".repeat(63), name: "p".repeat(63), node: "w".repeat(63) };
  expect(lostNodeMessage(long, "c".repeat(100)).length).toBeLessThan(1024);
});
