import { expect, test } from "bun:test";
import type { Workspace } from "@pko/api";
import type { ApiObject } from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";

import { unlimitedSlots } from "../../shared/channels/slots.ts";
import { now, settings } from "../testing/views.ts";
import type { WorkspaceStores } from "./index.ts";
import { preemptionReader } from "./room.ts";

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
  const read = preemptionReader(stores as unknown as WorkspaceStores, () => ({
    victims: new Set(),
    victimOf: new Map(),
  }));
  return { read, scans: () => scans };
}

test("all Workspaces are read once per second at most, however many passes there are", () => {
  const { read, scans } = counted([unschedulable]);
  for (let ms = 0; ms < 2000; ms++) read({ now: now + ms, monotonic: ms });
  expect(scans()).toBe(2);
});

test("none is read while every pod is scheduled", () => {
  const { read, scans } = counted([]);
  read({ now, monotonic: 0 });
  expect(scans()).toBe(0);
});
