import { expect, test } from "bun:test";
import type { Workspace } from "@pko/api";
import type { ApiObject } from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";

import { unlimitedSlots } from "../shared/channels/slots.ts";
import { notReady, now, settings, view } from "./testing/views.ts";
import type { WorkspaceMemory } from "./memory.ts";
import type { WorkspaceStores } from "./observe/index.ts";
import { preemptionReader } from "./preemptions.ts";

const unschedulable: ApiObject<Pod> = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    namespace: "team",
    name: "new-workspace-0",
    labels: { "auto.pulumi.com/component": "workspace", "auto.pulumi.com/workspace-name": "new" },
    creationTimestamp: new Date(now).toISOString(),
  },
  status: {
    conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "1 Insufficient cpu." }],
  },
};

/** Counts how often all Workspaces are read. */
function counted(pods: readonly ApiObject<Pod>[]) {
  let scans = 0;
  const store = (objects: readonly unknown[]) => ({
    get: () => undefined,
    list: () => objects,
    byIndex: () => objects,
  });
  const workspaces = {
    ...store([]),
    list: (): Workspace[] => {
      scans++;
      return [];
    },
  };
  const stores = {
    workspaces,
    pods: store(pods),
    updates: store([]),
    settings,
    slots: unlimitedSlots,
    memory: new Map(),
  };
  const read = preemptionReader(stores as unknown as WorkspaceStores);
  return { read, scans: () => scans };
}

test("all Workspaces are read once per second at most, however many passes there are", () => {
  const { read, scans } = counted([unschedulable]);
  for (let ms = 0; ms < 2000; ms++) read({ now: now + ms, monotonic: ms });
  expect(scans()).toBe(2);
});

test("none is read while no pod wants room", () => {
  const { read, scans } = counted([]);
  read({ now, monotonic: 0 });
  expect(scans()).toBe(0);
});

test("a pod that becomes unschedulable after a plan was made is in the next plan, and until then in none", () => {
  const pods = [unschedulable];
  const { read } = counted(pods);
  expect(read({ now, monotonic: 0 })).toMatchObject({ planned: new Set(["team/new"]), renewedAt: now + 1000 });
  const labels = { ...unschedulable.metadata.labels, "auto.pulumi.com/workspace-name": "newer" };
  pods.push({ ...unschedulable, metadata: { ...unschedulable.metadata, name: "newer-workspace-0", labels } });
  // A change of the node's clock does not move the next plan.
  const early = read({ now: now + 5200, monotonic: 200 });
  expect(early).toMatchObject({ planned: new Set(["team/new"]), renewedAt: now + 6000 });
  expect(read({ now: now + 6000, monotonic: 1000 }).planned).toEqual(new Set(["team/new", "team/newer"]));
});

test("a pod that room would not help is in the plan, too", () => {
  const { read } = counted([unschedulable]);
  expect(read({ now: now + 3_600_000, monotonic: 0 }).planned).toEqual(new Set(["team/new"]));
});

/** Whether a workspace whose preparation failed makes room. */
function makesRoom(memory: WorkspaceMemory): boolean {
  const { workspace } = view(notReady(60, "InstallationFailed"));
  const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "web-workspace", uid: "s0", controller: true };
  const pod = {
    ...unschedulable,
    metadata: { name: "web-workspace-0", namespace: "team", ownerReferences: [owner] },
    status: {},
  };
  const none = { get: () => undefined, list: () => [], byIndex: () => [], activeByIndex: () => [] };
  const stores = {
    workspaces: { ...none, list: () => [workspace] },
    pods: { ...none, get: () => pod, byIndex: () => [unschedulable] },
    statefulSets: none,
    updates: none,
    settings,
    slots: unlimitedSlots,
    memory: new Map([["team/web", memory]]),
  };
  return preemptionReader(stores as unknown as WorkspaceStores)({ now, monotonic: 0 }).victims.has("team/web");
}

test("a failed workspace makes room between attempts, and not during one", () => {
  const retry = { failures: 3, generation: 2, request: "" };
  expect(makesRoom({ retry: { ...retry, dueAt: 60_000 } })).toBe(true);
  expect(makesRoom({ retry: { ...retry, dueAt: Infinity, since: 0 } })).toBe(false);
});
