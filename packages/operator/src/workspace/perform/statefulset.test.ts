import { expect, test } from "bun:test";
import type { KubeObject } from "@pko/kube";

import { set, view } from "../testing/views.ts";
import type { Performer, WorkspacePerformed } from "./owned.ts";
import { restoreStatefulSet, scaleToZero } from "./statefulset.ts";

const observed = view(set());

/** The StatefulSet is `present` on the API server, if it exists. */
async function restore(present: KubeObject | undefined): Promise<WorkspacePerformed> {
  const client = { find: async () => present, list: async () => ({ items: [] }), apply: async () => present };
  const { inputs, statefulSet } = observed;
  if (!inputs?.pod.ok || !statefulSet) throw new Error("the view has no StatefulSet");
  const step = { kind: "restoreStatefulSet", uid: statefulSet.uid, objects: inputs.pod.objects } as const;
  const { signal } = new AbortController();
  return await restoreStatefulSet({ client } as unknown as Performer, step, { view: observed, signal });
}

function withGeneration(generation: number): KubeObject {
  const { apiVersion, kind, metadata: workspace } = observed.workspace;
  const owner = { apiVersion, kind, name: workspace.name ?? "", uid: workspace.uid ?? "", controller: true };
  const metadata = { name: "web-workspace", uid: observed.statefulSet?.uid ?? "", resourceVersion: "1", generation };
  return { apiVersion: "apps/v1", kind: "StatefulSet", metadata: { ...metadata, ownerReferences: [owner] } };
}

test("restoring a StatefulSet that was deleted waits for the store instead of repeating at once", async () => {
  expect(await restore(undefined)).toEqual({ kind: "stale" });
});

test("so does restoring one of which the API server has an earlier generation, because etcd was restored", async () => {
  const { uid = "", generation = 0 } = observed.statefulSet ?? {};
  expect(await restore(withGeneration(generation))).toEqual({ kind: "done", facts: { written: { uid, generation } } });
  expect(await restore(withGeneration(generation - 1))).toEqual({ kind: "stale" });
});

/** The annotations with which the StatefulSet is scaled to zero. */
async function annotationsOf(why: { notStarted?: string; backedOffGeneration?: number }): Promise<unknown> {
  const { uid = "", generation = 0 } = observed.statefulSet ?? {};
  const present = withGeneration(generation);
  let written: unknown;
  const client = {
    find: async () => present,
    list: async () => ({ items: [] }),
    patch: async (_resource: unknown, _ref: unknown, { patch }: { patch: { body: KubeObject } }) => {
      written = patch.body;
      return present;
    },
  };
  const step = { kind: "scaleToZero", uid, ...why } as const;
  await scaleToZero({ client, updates: none } as unknown as Performer, step, {
    view: observed,
    signal: new AbortController().signal,
  });
  expect(written).toMatchObject({ spec: { replicas: 0 } });
  return (written as KubeObject).metadata.annotations;
}

const none = { byIndex: () => [], activeByIndex: () => [] };

test("the StatefulSet records why its pod did not start, for every replica and the next process, until it is scaled to zero otherwise", async () => {
  expect(await annotationsOf({ notStarted: "no such image" })).toEqual({
    "auto.pulumi.com/not-started": "no such image",
  });
  expect(await annotationsOf({ backedOffGeneration: 2 })).toEqual({
    "auto.pulumi.com/put-away": "2",
    "auto.pulumi.com/not-started": null,
  });
});
