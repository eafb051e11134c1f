import { describe, expect, test } from "bun:test";
import type { ApiObject } from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";

import type { Candidate } from "../view.ts";
import { makesRoom, planPreemptions, wantsRoom, type UnschedulablePod } from "./preemption.ts";
import { ago, notReady, now, ready, update, view, wokenFor, type Trait } from "../testing/views.ts";

const text = (ms: number): string => new Date(ms).toISOString();

function pod(message?: string, ageSeconds = 60): ApiObject<Pod> {
  const unscheduled = { type: "PodScheduled", status: "False", reason: "Unschedulable", message: message ?? "" };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web-workspace-0", creationTimestamp: text(ago(ageSeconds)) },
    ...(message !== undefined && { status: { conditions: [unscheduled] } }),
  };
}

const terminating = (): ApiObject<Pod> => ({ ...pod(), metadata: { deletionTimestamp: text(now) } });

function candidate(traits: readonly Trait[], part: Partial<Candidate> = {}): Candidate {
  const { workspace, updates, idleTimeoutMs } = view(...traits);
  return { workspace, pod: pod(), updates, idleTimeoutMs, losesState: false, ...part };
}

const named = (name: string, { workspace, ...rest }: Candidate): Candidate => ({
  ...rest,
  workspace: { ...workspace, metadata: { ...workspace.metadata, name } },
});

describe("a pod wants room", () => {
  const cpu = "1 Insufficient cpu.";
  const cases: [string, Partial<UnschedulablePod>, boolean][] = [
    ["when a resource is exhausted", { message: "0/1 nodes are available: 1 Insufficient memory." }, true],
    ["when a node has its maximum of pods", { message: "0/1 nodes are available: 1 Too many pods." }, true],
    ["not when only a taint keeps it off", { message: "1 node(s) had untolerated taint." }, false],
    ["for ten minutes", { message: cpu, createdAt: ago(600) }, true],
    ["not when it has been unschedulable for longer", { message: cpu, createdAt: ago(601) }, false],
  ];
  test.each(cases)("%s", (_, pod, expected) => {
    expect(wantsRoom({ workspace: "team/new", message: "", createdAt: ago(60), ...pod }, now)).toBe(expected);
  });
});

describe("a pod makes room", () => {
  const onNode = { spec: { nodeName: "node", containers: [] } };
  const deleted = (seconds: number, graceSeconds = 30) => ({
    deletionTimestamp: text(ago(seconds - graceSeconds)),
    deletionGracePeriodSeconds: graceSeconds,
  });
  test.each<[string, Partial<ApiObject<Pod>>, boolean]>([
    ["when its deletion has just been requested", { ...onNode, metadata: deleted(1) }, true],
    ["not when it is not deleted", onNode, false],
    ["not when it is on no node", { metadata: deleted(1) }, false],
    ["not when it has been terminating for a minute", { ...onNode, metadata: deleted(60) }, false],
    ["not after a minute of its long grace period", { ...onNode, metadata: deleted(60, 3600) }, false],
  ])("%s", (_, part, expected) => {
    expect(makesRoom({ ...pod(), ...part }, now)).toBe(expected);
  });
});

const waiting = (workspace: string, seconds = 60): UnschedulablePod => ({
  workspace,
  message: "1 Insufficient cpu.",
  createdAt: ago(seconds),
});

const preemptedAmong = (
  candidates: readonly Candidate[],
  { waitingPods = 1, terminatingPods = 0 }: { waitingPods?: number; terminatingPods?: number } = {},
): string[] => {
  const unschedulable = Array.from({ length: waitingPods }, (_, index) => waiting(`team/new-${index}`));
  return [...planPreemptions({ now, unschedulable, terminatingPods, candidates }).victims];
};

describe("a workspace is preempted", () => {
  const cases: [string, Candidate, boolean][] = [
    ["when it is ready and idle", candidate([ready(60)]), true],
    ["when its preparation has failed", candidate([notReady(60, "InstallationFailed")]), true],
    ["not when it has just become ready", candidate([ready(4)]), false],
    ["not when its last Update has just ended", candidate([ready(60), update("ended", { endedAt: ago(4) })]), false],
    ["when only a clock that was wrong could have recorded its time", candidate([ready(-86_400)]), true],
    ["not when it became ready a moment ago by a clock that is ahead", candidate([ready(-2)]), false],
    [
      "not when its last Update ended on a node whose clock is ahead",
      candidate([ready(60), update("ended", { endedAt: ago(-6) })]),
      false,
    ],
    ["not while it is being prepared", candidate([notReady(60)]), false],
    ["not when an Update waits for it", candidate([ready(60), update("waiting")]), false],
    ["not when an Update runs in it", candidate([ready(60), update("onPod")]), false],
    ["not when it keeps its pod forever", candidate([ready(60)], { idleTimeoutMs: 0 }), false],
    ["not when its state would be lost with its pod", candidate([ready(60)], { losesState: true }), false],
    ["not when a person needs it", candidate([ready(60), wokenFor(60)]), false],
    ["not when its pod is already terminating", candidate([ready(60)], { pod: terminating() }), false],
    ["not when its own pod is unschedulable", candidate([ready(60)], { pod: pod("1 Insufficient cpu.") }), false],
  ];
  test.each(cases)("%s", (_, one, expected) => {
    expect(preemptedAmong([one])).toEqual(expected ? ["team/web"] : []);
  });

  const idle = [60, 300, 5, 120].map((seconds) => named(`for-${seconds}`, candidate([ready(seconds)])));

  test("in the order of their idle time, and no more than are needed", () => {
    expect(preemptedAmong(idle, { waitingPods: 3, terminatingPods: 1 })).toEqual(["team/for-300", "team/for-120"]);
  });

  test("not when no pod waits for room", () => {
    expect(preemptedAmong(idle, { waitingPods: 0 })).toEqual([]);
  });

  test("not when more pods are terminating than want room", () => {
    expect(preemptedAmong(idle, { terminatingPods: 2 })).toEqual([]);
  });

  test("in the namespace of the pod that wants room first, and elsewhere only if none is left there", () => {
    const inNamespace = (namespace: string, { workspace, ...rest }: Candidate): Candidate => ({
      ...rest,
      workspace: { ...workspace, metadata: { ...workspace.metadata, namespace } },
    });
    const candidates = [
      inNamespace("a", named("old", candidate([ready(900)]))),
      inNamespace("b", named("idle", candidate([ready(60)]))),
    ];
    const victims = (...unschedulable: readonly UnschedulablePod[]): Record<string, string> =>
      Object.fromEntries(planPreemptions({ now, unschedulable, terminatingPods: 0, candidates }).victimOf);
    expect(victims(waiting("b/new"))).toEqual({ "b/new": "b/idle" });
    expect(victims(waiting("b/new"), waiting("b/other", 30))).toEqual({ "b/new": "b/idle", "b/other": "a/old" });
    expect(victims(waiting("c/new", 90), waiting("a/new"))).toEqual({ "a/new": "a/old", "c/new": "b/idle" });
  });
});
