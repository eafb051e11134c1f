/** A stale store must not delete a pod: whether an Update runs in it is confirmed with the API server. */
import { expect, test } from "bun:test";

import { updates, type WorkspaceSettings } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { testTimeoutMs, WorkspaceScene } from "./scene.ts";

const spec = { local: { dir: "/app" }, stacks: [{ name: "dev", create: true }] };

/** A Workspace controller whose store does not receive any Update. */
const behind = (settings: Partial<WorkspaceSettings> = {}): Promise<WorkspaceScene> =>
  WorkspaceScene.open(settings, {
    proxied: (proxy) =>
      void proxy.onEvent(async (_, { resource }) => {
        if (resource === "updates") await new Promise(() => {});
        return "pass" as const;
      }),
  });

/** The store lists the Updates once; after that the controller has read them twice. */
async function updatesRead(scene: WorkspaceScene): Promise<void> {
  const isRead = (): boolean => scene.requests("list", "updates").length >= 3;
  await waitFor(isRead, { timeoutMs: 45_000, what: "the Updates to be read" });
  expect(scene.requests("get", "updates").map(({ status }) => status)).toContain(200);
}

/** Ready, with an Update in its pod that the operator's store does not show. */
async function withUnseenUpdate(scene: WorkspaceScene): Promise<void> {
  await scene.create("web", spec);
  await scene.becomes("web", "WaitingForReplicas");
  // Before the pod, which may otherwise be idle for too long on a slow machine.
  await scene.createUpdate("unseen", "web");
  const { metadata } = await scene.simulatePod("web");
  const patch = { type: "merge", body: { status: { podUid: metadata.uid } } } as const;
  await scene.client.patch(updates, scene.ref("unseen"), { patch, subresource: "status" });
  await scene.becomes("web", "Succeeded");
}

test(
  "a workspace is not scaled to zero if its store does not show the Update in its pod",
  async () => {
    await using scene = await behind({ idleTimeoutMs: 1500 });
    await withUnseenUpdate(scene);
    await scene.becomes("web", "Succeeded", "idle");
    await updatesRead(scene);
    expect((await scene.statefulSet("web")).spec?.replicas).toBe(1);
  },
  testTimeoutMs,
);

test(
  "its pod is not replaced either",
  async () => {
    await using scene = await behind();
    await withUnseenUpdate(scene);
    const { generation } = (await scene.statefulSet("web")).metadata;
    await scene.change("web", { image: "mine:2" });
    await updatesRead(scene);
    expect((await scene.statefulSet("web")).metadata.generation).toBe(generation);
  },
  testTimeoutMs,
);
