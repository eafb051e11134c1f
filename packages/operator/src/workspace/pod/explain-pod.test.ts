import { describe, expect, test } from "bun:test";

import type { ContainerStatus, PodStatus } from "kubernetes-types/core/v1";

import { explainPod, isUnschedulable } from "./explain-pod.ts";

const container = (part: Partial<ContainerStatus>): ContainerStatus => ({
  name: "pulumi",
  image: "mine:1",
  imageID: "",
  ready: false,
  restartCount: 0,
  ...part,
});
const waiting = (reason: string, message?: string, name = "pulumi"): PodStatus => ({
  phase: "Pending",
  containerStatuses: [container({ name, state: { waiting: { reason, ...(message && { message }) } } })],
});
const scheduled = (reason: string, message: string): PodStatus => ({
  phase: "Pending",
  conditions: [{ type: "PodScheduled", status: "False", reason, message }],
});

const cases: Readonly<Record<string, { status: PodStatus; message: string; stuck: boolean }>> = {
  "a pod without a status": { status: {}, message: "the pod is starting", stuck: false },
  "containers that are being created": {
    status: waiting("ContainerCreating"),
    message: "the pod is starting",
    stuck: false,
  },
  "no node": {
    status: scheduled("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu."),
    message: "no node can take the pod: 0/1 nodes are available: 1 Insufficient cpu.",
    stuck: true,
  },
  "a scheduling gate": {
    status: scheduled("SchedulingGated", "x"),
    message: "the pod waits until its scheduling gates are removed",
    stuck: false,
  },
  "an image that cannot be pulled": {
    status: waiting("ErrImagePull", "rpc error:\n  not found"),
    message: "the image mine:1 cannot be pulled: rpc error: not found",
    stuck: true,
  },
  "an image whose pull is retried": {
    status: waiting("ImagePullBackOff", "Back-off"),
    message: "the image mine:1 cannot be pulled: Back-off",
    stuck: true,
  },
  "an image that is never pulled": {
    status: waiting("ErrImageNeverPull"),
    message: "the image mine:1 is not on the node, and its pull policy is Never",
    stuck: true,
  },
  "an invalid image name": {
    status: waiting("InvalidImageName"),
    message: '"mine:1" is not the name of an image',
    stuck: true,
  },
  "a Secret that does not exist": {
    status: waiting("CreateContainerConfigError", 'secret "token" not found'),
    message: 'the container pulumi cannot be created: secret "token" not found',
    stuck: true,
  },
  "a program that is not in the image": {
    status: waiting("RunContainerError", "no such file"),
    message: "the container pulumi cannot be started: no such file",
    stuck: true,
  },
  "an init container that fails": {
    status: {
      initContainerStatuses: [
        container({ name: "fetch", state: { terminated: { exitCode: 3, reason: "Error", message: "no network" } } }),
      ],
      containerStatuses: [container({ state: { waiting: { reason: "PodInitializing" } } })],
    },
    message: "the container fetch has terminated: exit code 3: no network",
    stuck: true,
  },
  "an init container that is done": {
    status: {
      initContainerStatuses: [
        container({ name: "bootstrap", state: { terminated: { exitCode: 0, reason: "Completed" } } }),
      ],
      containerStatuses: [container({ state: { waiting: { reason: "PodInitializing" } } })],
    },
    message: "the pod is starting",
    stuck: false,
  },
  "an agent that keeps crashing": {
    status: {
      containerStatuses: [
        container({
          state: { waiting: { reason: "CrashLoopBackOff", message: "back-off" } },
          lastState: { terminated: { exitCode: 139, signal: 11, reason: "Error" } },
        }),
      ],
    },
    message: "the container pulumi keeps crashing: signal 11",
    stuck: true,
  },
  "too little memory": {
    status: {
      containerStatuses: [
        container({
          state: { waiting: { reason: "CrashLoopBackOff" } },
          lastState: { terminated: { exitCode: 137, reason: "OOMKilled" } },
        }),
      ],
    },
    message:
      "the container pulumi keeps crashing: it ran out of memory (OOMKilled); raise spec.resources.limits.memory (in a Stack, workspaceTemplate.spec.resources.limits.memory), or remove the limit",
    stuck: true,
  },
  "too little memory for another container": {
    status: {
      containerStatuses: [
        container({ name: "bootstrap", state: { terminated: { exitCode: 137, reason: "OOMKilled" } } }),
      ],
    },
    message:
      "the container bootstrap has terminated: it ran out of memory (OOMKilled); its node has too little memory, or its limit, which a LimitRange may set, is too low",
    stuck: true,
  },
  "an agent that has terminated": {
    status: { containerStatuses: [container({ state: { terminated: { exitCode: 0, reason: "Completed" } } })] },
    message: "the container pulumi has terminated: exit code 0 (Completed)",
    stuck: true,
  },
  "an eviction": {
    status: { phase: "Failed", reason: "Evicted", message: "The node was low on resource: ephemeral-storage." },
    message: "the pod was evicted from its node: The node was low on resource: ephemeral-storage.",
    stuck: true,
  },
  "a node that was shut down": {
    status: { phase: "Failed", reason: "NodeShutdown", message: "Pod was terminated" },
    message: "the pod failed (NodeShutdown): Pod was terminated",
    stuck: true,
  },
  "a failure without a reason": { status: { phase: "Failed" }, message: "the pod failed", stuck: true },
};

describe("a pod that is not up is explained", () => {
  for (const [name, { status, message, stuck }] of Object.entries(cases)) {
    test(name, () => expect(explainPod({ status })).toEqual({ message, stuck }));
  }

  test("a terminating pod", () => {
    expect(explainPod({ metadata: { deletionTimestamp: "2030-01-01T00:00:00Z" } }).message).toBe(
      "the former pod is terminating",
    );
  });

  test("a long message is truncated", () => {
    expect(explainPod({ status: waiting("ErrImagePull", "x".repeat(9999)) }).message.length).toBeLessThan(600);
  });

  test("a claim is named", () => {
    const spec = {
      nodeName: "n",
      containers: [],
      volumes: [{ name: "v", persistentVolumeClaim: { claimName: "data" } }],
    };
    expect(explainPod({ spec, status: {} }).message).toContain("claim data");
  });
});

test("a pod is unschedulable if the scheduler reports it and the pod is not terminating", () => {
  const status = scheduled("Unschedulable", "no");
  expect(isUnschedulable({ status })).toBe(true);
  expect(isUnschedulable({ status: scheduled("SchedulingGated", "no") })).toBe(false);
  expect(isUnschedulable({ status, metadata: { deletionTimestamp: "2030-01-01T00:00:00Z" } })).toBe(false);
});
