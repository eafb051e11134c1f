import { expect, test } from "bun:test";
import { podNameOf, statefulSetNameOf, workspaceKind, type Workspace } from "@pko/api";
import { metricsRegistry, type ApiObject } from "@pko/kube";
import type { StatefulSet } from "kubernetes-types/apps/v1";
import type { Pod } from "kubernetes-types/core/v1";

import { whyNotStarted } from "./workspace/observe/pod.ts";
import { exposeWorkspaces } from "./workspace-metrics.ts";

const namespace = "team";

/** Workspaces with the replicas of their StatefulSet and the phase of their pod, if these exist. */
const workspaces: Readonly<Record<string, { replicas?: number; phase?: string; notStarted?: true; isStalled?: true }>> =
  {
    busy: { replicas: 1, phase: "Running" },
    unschedulable: { replicas: 1, phase: "Pending" },
    rejected: { replicas: 1 },
    idle: { replicas: 0 },
    terminating: { replicas: 0, phase: "Running" },
    new: {},
    outwaited: { replicas: 0, notStarted: true },
    startedLater: { replicas: 1, phase: "Running", notStarted: true },
    outwaitedAndStalled: { replicas: 0, notStarted: true, isStalled: true },
  };

const stalled = {
  type: "Stalled",
  status: "True",
  reason: "InitializationFailed",
  message: "",
  lastTransitionTime: "",
} as const;
const workspace = (name: string): Workspace => ({
  ...workspaceKind,
  metadata: { namespace, name },
  ...(workspaces[name]?.isStalled && { status: { conditions: [stalled] } }),
});

function exposed(): string {
  const registry = metricsRegistry();
  const names = Object.keys(workspaces);
  const find = (key: string, nameOf: (name: string) => string) =>
    workspaces[names.find((name) => key === `${namespace}/${nameOf(name)}`) ?? ""];
  exposeWorkspaces(registry, {
    workspaces: { list: () => names.map(workspace) },
    statefulSets: {
      get(key) {
        const { replicas, notStarted } = find(key, statefulSetNameOf) ?? {};
        if (replicas === undefined) return undefined;
        const annotations: Record<string, string> = notStarted
          ? { "auto.pulumi.com/not-started": "no such image" }
          : {};
        return { metadata: { annotations }, spec: { replicas } } as ApiObject<StatefulSet>;
      },
    },
    hasNotStarted: (statefulSet) => whyNotStarted(statefulSet) !== undefined,
    pods: {
      get(key) {
        const phase = find(key, podNameOf)?.phase;
        return phase === undefined ? undefined : ({ metadata: {}, status: { phase } } as ApiObject<Pod>);
      },
    },
  });
  return registry.expose();
}

test("counts the workspaces whose pod is running, pending or missing, and those that are scaled to zero", () => {
  expect(exposed().match(/^workspaces\{.*$/gm)).toEqual([
    'workspaces{state="running"} 2',
    'workspaces{state="pending"} 3',
    'workspaces{state="scaledToZero"} 4',
  ]);
});

test("names the workspaces that wait for their pod, even if it was rejected, or deleted before it started", () => {
  expect(exposed().match(/^workspaces_pod_pending\{.*$/gm)).toEqual([
    'workspaces_pod_pending{namespace="team",name="unschedulable"} 1',
    'workspaces_pod_pending{namespace="team",name="rejected"} 1',
    'workspaces_pod_pending{namespace="team",name="outwaited"} 1',
  ]);
});
