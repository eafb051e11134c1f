import { describe, expect, test } from "bun:test";
import type { Known } from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";

import { wantsRoom, yieldingTo, type Tenant } from "./room.ts";
import { ago, notReady, now, ready, update, view, type Trait } from "./testing/views.ts";

const text = (ms: number): string => new Date(ms).toISOString();

function pod(message?: string, ageSeconds = 60): Known<Pod> {
  const refused = { type: "PodScheduled", status: "False", reason: "Unschedulable", message: message ?? "" };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web-workspace-0", creationTimestamp: text(ago(ageSeconds)) },
    ...(message !== undefined && { status: { conditions: [refused] } }),
  };
}

const ending = (): Known<Pod> => ({ ...pod(), metadata: { deletionTimestamp: text(now) } });

function tenant(traits: readonly Trait[], part: Partial<Tenant> = {}): Tenant {
  const { workspace, updates, idleTimeoutMs } = view(...traits);
  return { workspace, pod: pod(), updates, idleTimeoutMs, isSleepless: false, ...part };
}

const named = (name: string, { workspace, ...rest }: Tenant): Tenant => ({
  ...rest,
  workspace: { ...workspace, metadata: { ...workspace.metadata, name } },
});

describe("a pod wants room", () => {
  const cases: [string, Known<Pod>, boolean][] = [
    ["when a resource is used up", pod("0/1 nodes are available: 1 Insufficient memory."), true],
    ["when a node has as many pods as it takes", pod("0/1 nodes are available: 1 Too many pods."), true],
    ["not when only a taint is in its way", pod("0/1 nodes are available: 1 node(s) had untolerated taint."), false],
    ["not when it has waited in vain for long", pod("1 Insufficient cpu.", 601), false],
    ["not when it has its node", pod(), false],
  ];
  test.each(cases)("%s", (_, which, expected) => expect(wantsRoom(which, now)).toBe(expected));
});

describe("a workspace makes room", () => {
  const cases: [string, Tenant, boolean][] = [
    ["when it is ready and idle", tenant([ready(60)]), true],
    ["when its preparation has failed", tenant([notReady(60, "InstallationFailed")]), true],
    ["not when it became ready a moment ago", tenant([ready(4)]), false],
    ["not when its last Update ended a moment ago", tenant([ready(60), update("ended", { endedAt: ago(4) })]), false],
    ["not while it is being prepared", tenant([notReady(60)]), false],
    ["not when an Update waits for it", tenant([ready(60), update("waiting")]), false],
    ["not when an Update runs in it", tenant([ready(60), update("onPod")]), false],
    ["not when it is to be kept for ever", tenant([ready(60)], { idleTimeoutMs: 0 }), false],
    ["not when its state would be lost with its pod", tenant([ready(60)], { isSleepless: true }), false],
    ["not when its pod is ending already", tenant([ready(60)], { pod: ending() }), false],
    ["not when its own pod has no node", tenant([ready(60)], { pod: pod("1 Insufficient cpu.") }), false],
  ];
  test.each(cases)("%s", (_, one, expected) => {
    expect(yieldingTo(1, [one], now)).toEqual(expected ? ["team/web"] : []);
  });

  const idle = [60, 300, 5, 120].map((seconds) => named(`for-${seconds}`, tenant([ready(seconds)])));

  test("who has been idle for longest goes first, and no more go than are wanted", () => {
    expect(yieldingTo(2, idle, now)).toEqual(["team/for-300", "team/for-120"]);
  });

  test("nobody goes when more pods are ending than want room", () => {
    expect(yieldingTo(-1, idle, now)).toEqual([]);
  });
});
