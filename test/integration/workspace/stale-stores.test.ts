/** A stale store must not delete a pod: whether an Update runs in it is confirmed with the API server. */
import { expect, test } from "bun:test";

import { updates, type WorkspaceSettings } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { testTimeoutMs, Stage } from "./harness.ts";

const spec = { local: { dir: "/app" }, stacks: [{ name: "dev", create: true }] };

/** A Workspace controller whose store does not receive any Update. */
const behind = (settings: Partial<WorkspaceSettings> = {}): Promise<Stage> =>
  Stage.open(settings, {
    proxied: (proxy) =>
      void proxy.onEvent(async (_, { resource }) => {
        if (resource === "updates") await new Promise(() => {});
        return "pass" as const;
      }),
  });

/** The store lists the Updates once; after that the controller has read them twice. */
async function updatesRead(stage: Stage): Promise<void> {
  const isRead = (): boolean => stage.requests("list", "updates").length >= 3;
  await waitFor(isRead, { timeoutMs: 20_000, what: "the Updates to be read" });
  expect(stage.requests("get", "updates").map(({ status }) => status)).toContain(200);
}

/** Ready, with an Update in its pod that the operator's store does not show. */
async function withUnseenUpdate(stage: Stage): Promise<void> {
  await stage.create("web", spec);
  await stage.becomes("web", "WaitingForReplicas");
  const { metadata } = await stage.simulatePod("web");
  await stage.createUpdate("unseen", "web");
  const patch = { type: "merge", body: { status: { podUid: metadata.uid } } } as const;
  await stage.client.patch(updates, stage.at("unseen"), { patch, subresource: "status" });
  await stage.becomes("web", "Succeeded");
}

test(
  "a workspace is not scaled to zero if its store does not show the Update in its pod",
  async () => {
    await using stage = await behind({ idleTimeoutMs: 1500 });
    await withUnseenUpdate(stage);
    await stage.becomes("web", "Succeeded", "idle");
    await updatesRead(stage);
    expect((await stage.statefulSet("web")).spec?.replicas).toBe(1);
  },
  testTimeoutMs,
);

test(
  "its pod is not replaced either",
  async () => {
    await using stage = await behind();
    await withUnseenUpdate(stage);
    const { generation } = (await stage.statefulSet("web")).metadata;
    await stage.change("web", { image: "mine:2" });
    await updatesRead(stage);
    expect((await stage.statefulSet("web")).metadata.generation).toBe(generation);
  },
  testTimeoutMs,
);
