import { describe, expect, mock, test } from "bun:test";
import type { Update, Workspace } from "@pko/api";
import type { ApiObject, KubeObject, Store } from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";

import { workspaces } from "../../kinds.ts";
import { referencesHashAnnotation } from "../../shared/pods/workspace-pod.ts";
import { unlimitedSlots } from "../../shared/channels/slots.ts";
import { observeUpdate, type UpdateWorld } from "./index.ts";
import { at, noon, viewOf } from "../testing/views.ts";

const storeOf = <T extends KubeObject>(...objects: T[]): Store<T> => ({
  get: (key) => objects.find(({ metadata }) => `default/${metadata.name}` === key),
  list: () => objects,
  size: objects.length,
  byIndex: () => objects,
  active: () => objects,
  activeByIndex: () => objects,
  archived: () => [],
  restsUntil: () => undefined,
  hasSynced: true,
  subscribe: () => () => undefined,
});

const update = (name: string, stackName: string, ageMs: number): Update => {
  const { metadata, ...rest } = viewOf().update;
  const { spec } = rest;
  return {
    ...rest,
    metadata: { ...metadata, name, uid: name, creationTimestamp: at(-ageMs) },
    spec: { ...spec, stackName },
  };
};

const web: Workspace = {
  apiVersion: workspaces.apiVersion,
  kind: workspaces.kind,
  metadata: { name: "web", namespace: "default", generation: 2 },
  spec: { stacks: [{ name: "dev" }] },
  status: { observedGeneration: 1 },
};

const worldOf = (updates: readonly Update[], workspace: Workspace = web): UpdateWorld => ({
  updates: storeOf(...updates),
  workspaces: storeOf(workspace),
  pods: storeOf(),
  stacks: storeOf(),
  approvals: storeOf(),
  approvalPolicy: { state: () => ({ kind: "unknown" }) },
  classOf: () => ({ kind: "none" }),
  runs: { find: () => undefined },
  projects: { projectOf: () => undefined },
  slots: unlimitedSlots,
});

test("the unfinished Updates of the Workspace are observed, and whether the Workspace has their stacks", () => {
  const typo = update("typo", "dve", 3000);
  const first = { ...update("first", "dev", 2000), status: { podUid: "p" } };
  const world = worldOf([typo, first, update("second", "dev", 1000)]);
  const facts = { hasStarted: false, isDeleting: false, canRun: true };
  expect(observeUpdate(world, "default/second", { now: noon })?.siblings).toEqual([
    { ...facts, name: "typo", createdAt: at(-3000), canRun: false },
    { ...facts, name: "first", createdAt: at(-2000), hasStarted: true },
  ]);
  const seen = observeUpdate(world, "default/typo", { now: noon });
  expect(seen?.workspace).toEqual({ state: "otherStack", stacks: ["dev"], isPrepared: false });
});

test("what the pod reads is observed by its hash", () => {
  const statefulSet = { apiVersion: "apps/v1", kind: "StatefulSet", name: "web-workspace", uid: "s", controller: true };
  const pod: ApiObject<Pod> = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: "web-workspace-0",
      uid: "p",
      annotations: { [referencesHashAnnotation]: "1a2b" },
      ownerReferences: [statefulSet],
    },
  };
  const world = { ...worldOf([update("first", "dev", 2000)]), pods: storeOf(pod) };
  expect(observeUpdate(world, "default/first", { now: noon })?.pod?.referencesHash).toBe("1a2b");
});

test("a Workspace that lists no stacks runs an Update of any stack", () => {
  const bare: Workspace = {
    ...web,
    spec: {},
    status: { observedGeneration: 2, conditions: [], address: "10.0.0.1:1" },
  };
  const world = worldOf([update("first", "dev", 2000), update("second", "prod", 1000)], bare);
  const seen = observeUpdate(world, "default/first", { now: noon });
  expect(seen?.workspace.state).toBe("notReady");
  expect(seen?.siblings).toMatchObject([{ name: "second", canRun: true }]);
});

test("the size of the stack is that after the last operation that changed it", () => {
  const running = { ...update("now", "dev", 0), status: { podUid: "p" } };
  const ended = (name: string, spec: Update["spec"], status: Update["status"]): Update => {
    const plain = update(name, "dev", 1000);
    return { ...plain, spec: { ...plain.spec, ...spec }, status: { ...status } };
  };
  const up = ended("up", { type: "up" }, { endTime: at(-3000), changes: { create: 7 } });
  const preview = ended("preview", { type: "preview" }, { endTime: at(-2000), changes: { create: 9 } });
  const planSpec = { type: "destroy", previewOnly: true };
  const plan = ended("plan", planSpec, { endTime: at(-1000), changes: { delete: 7 } });
  const world = worldOf([running, up, preview, plan]);
  expect(observeUpdate(world, "default/now", { now: noon })?.expectedResources).toBe(7);
});

describe("the pod of an Update", () => {
  const podOf = (kind: string, name: string): ApiObject<Pod> => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: "web-workspace-0",
      namespace: "default",
      uid: "p1",
      ownerReferences: [{ apiVersion: "apps/v1", kind, name, uid: "owner", controller: true }],
    },
  });
  const seen = (pod: ApiObject<Pod>, status: Update["status"] = {}) => {
    const world = { ...worldOf([{ ...update("first", "dev", 0), status }]), pods: storeOf(pod) };
    return observeUpdate(world, "default/first", { now: noon })?.pod?.agent.uid;
  };

  test("is one that a StatefulSet of the workspace's name controls", () => {
    expect(seen(podOf("StatefulSet", "web-workspace"))).toBe("p1");
    expect(seen(podOf("StatefulSet", "other"))).toBeUndefined();
    expect(seen(podOf("Job", "web-workspace"))).toBeUndefined();
    expect(seen({ ...podOf("", ""), metadata: { name: "web-workspace-0", namespace: "default" } })).toBeUndefined();
  });

  test("is where its run is followed, at the address that the pod has now", () => {
    const find = mock((): undefined => undefined);
    const pod = { ...podOf("StatefulSet", "web-workspace"), status: { podIP: "10.0.0.2" } };
    const started = { ...update("first", "dev", 0), status: { podUid: "p1" } };
    observeUpdate({ ...worldOf([started]), pods: storeOf(pod), runs: { find } }, "default/first", { now: noon });
    expect(find).toHaveBeenLastCalledWith({ uid: "p1", ip: "10.0.0.2" }, "first");
    const former = { ...started, status: { podUid: "p0" } };
    observeUpdate({ ...worldOf([former]), pods: storeOf(pod), runs: { find } }, "default/first", { now: noon });
    expect(find).toHaveBeenLastCalledWith({ uid: "p0" }, "first");
  });

  test("stays the one that it runs in, whatever controls that pod now", () => {
    expect(seen(podOf("StatefulSet", "other"), { podUid: "p1" })).toBe("p1");
    expect(seen(podOf("StatefulSet", "other"), { podUid: "p0" })).toBeUndefined();
  });
});
